"""Do the driver's kernel module and its libraries have the same version?

After an update of the driver the old kernel module stays loaded until it is reloaded, and NVML and CUDA refuse it:
"Driver/library version mismatch". A container started before the update keeps the old libraries. Reboot the host; or
stop everything that uses the GPUs, including services such as nvidia-persistenced, and reload the module. Then restart
the containers.

Source: NVML, NVML_ERROR_LIB_RM_VERSION_MISMATCH; /proc/driver/nvidia/version.
"""

from gputune.checks._answers import Facts, Findings, Measurements, error, not_applicable, ok, unknown, unread
from gputune.checks._questions import gap, has_gpu
from gputune.checks._remedies import on_host, typed

REBOOT = on_host("sudo reboot", ends_jobs=True, note="drain it first; then start containers anew")


def check(facts: Facts, measurements: Measurements) -> Findings:
    kernel, user, refusal = facts.driver.kernel_version, facts.driver.version, gap(facts, "driver.nvml")
    if refusal and refusal.cause == "version_mismatch":
        module = f"the loaded kernel module ({kernel or 'version unknown'})"
        message = f"{module} and the driver's libraries are of different versions: {refusal.reason}"
        yield error(message, _remedy(facts), fact=refusal.fact)
    elif not has_gpu(facts):
        yield not_applicable("no NVIDIA driver is in use")
    elif user is None:
        fact = "driver.version" if facts.driver.nvml else "driver.nvml"
        yield unread(facts, fact, "the version of the driver's libraries")
    elif kernel is None and "/dev/dxg" in facts.container.gpu_device_files:
        yield not_applicable(f"libraries {user}; in WSL the kernel module is part of Windows")
    elif kernel is None:
        yield unknown(f"libraries {user}; the kernel module's version could not be read")
    elif kernel != user:
        yield error(f"the loaded kernel module is {kernel}, the driver's libraries are {user}", _remedy(facts))
    else:
        yield ok(f"kernel module and libraries are both {user}")


def _remedy(facts: Facts) -> str:
    """A reboot loads the host's module. Libraries older than the module are left over, or part of an image."""
    versions = (facts.driver.kernel_version or "", facts.driver.version or "")
    kernel, user = ([int(part) for part in version.split(".") if part.isdigit()] for version in versions)
    if not kernel or not user or kernel < user:
        return REBOOT
    if facts.container.kind in ("docker", "podman"):
        note = "if it stays, the image has driver libraries of its own: dpkg -S libcuda.so.1 in it names their package"
        return typed(f"{facts.container.kind} restart CONTAINER", where="on the host", ends_jobs=True, note=note)
    if facts.container.kind == "kubernetes":
        note = "if it stays, the image has driver libraries of its own: take them out"
        return typed('kubectl delete pod "$HOSTNAME"', ends_jobs=True, note=f"its controller starts it anew; {note}")
    look = "ldconfig -p | grep -E 'lib(cuda|nvidia-ml).so.1'"
    return typed(look, note="lists the copies: remove the older one, or take its folder out of LD_LIBRARY_PATH")
