"""Is the NVIDIA driver loaded for the GPU on the PCI bus?

Without NVIDIA's kernel module torch cannot use a GPU; the open driver nouveau, which Linux loads instead, does not
support CUDA. The driver belongs to the host: a container uses the host's, whatever is installed in the container.

Source: NVIDIA, Driver Installation Guide.
"""

from gputune.checks._answers import Facts, Finding, error, not_applicable, ok, one_finding, unknown, unread, warning
from gputune.checks._questions import gpu_asked_for
from gputune.checks._remedies import on_host

INSTALL = (
    "sudo apt install nvidia-driver (Debian, non-free), sudo ubuntu-drivers install (Ubuntu), or "
    "https://www.nvidia.com/drivers"
)
LOAD = on_host(
    "sudo modprobe nvidia",
    changes_node=True,
    note="if no such module is found, install the driver: " + INSTALL + "; if its key is rejected, Secure Boot is on: "
    "enrol the key that signed it, with sudo mokutil --import KEY and a reboot (Ubuntu's is "
    "/var/lib/shim-signed/mok/MOK.der, DKMS's /var/lib/dkms/mok.pub), or switch Secure Boot off in the firmware; "
    "for anything else sudo dmesg | grep -i nvidia says why",
)
REPLACE_NOUVEAU = on_host(
    r"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf",
    "sudo update-initramfs -u",
    "sudo reboot",
    ends_jobs=True,
    changes_node=True,
    note=f"first install the driver, whose packages mostly do this too: {INSTALL}; on Fedora sudo dracut -f",
)
GIVEN_AWAY = ("vfio-pci", "pci-stub", "pciback")


@one_finding
def check(facts: Facts) -> Finding:
    if facts.driver.kernel_version:
        return ok(f"NVIDIA's kernel module {facts.driver.kernel_version} is loaded")
    if "/dev/dxg" in facts.container.gpu_device_files:
        return not_applicable("in WSL the driver is part of Windows")
    if facts.pci_gpus is None:
        return unread(facts, "pci_gpus", "the PCI bus")
    if any(gpu.driver == "nvidia" for gpu in facts.pci_gpus):
        return unknown("a GPU is held by NVIDIA's kernel module, whose version could not be read")
    idle = [gpu for gpu in facts.pci_gpus if gpu.driver not in GIVEN_AWAY]
    if not idle:
        assigned = "every NVIDIA GPU on the PCI bus is assigned to a virtual machine"
        return not_applicable(assigned if facts.pci_gpus else "there is no NVIDIA GPU on the PCI bus")
    held = ", ".join(f"{gpu.address} ({gpu.driver or 'no driver'})" for gpu in idle)
    remedy = REPLACE_NOUVEAU if any(gpu.driver == "nouveau" for gpu in idle) else LOAD
    message = f"NVIDIA's driver is not loaded for the GPU at {held}"
    return (error if gpu_asked_for(facts) else warning)(message, remedy, idle[0].address)
