"""NVIDIA GPUs on the PCI bus, whoever holds them."""

import pytest
from recorded import facts_of

from gputune.facts import PciGpu
from gputune.facts.pci import same

AUDIO = "DRIVER=snd_hda_intel\nPCI_CLASS=40300\nPCI_ID=10DE:22BA\n"
OTHER_MAKER = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n"
SWITCH = "DRIVER=nvidia-nvswitch\nPCI_CLASS=68000\nPCI_ID=10DE:22A3\n"


def gpus(text, address="0000:3B:00.0"):
    return facts_of("cpu-only", files={f"/sys/bus/pci/devices/{address}/uevent": text}).pci_gpus


def test_a_recorded_machine():
    found = facts_of("nvidia-h200-x8")
    assert [gpu.driver for gpu in found.pci_gpus] == ["nvidia"] * 8
    assert all(same(gpu.address, found.gpus[index].pci_bus_id) for index, gpu in enumerate(found.pci_gpus))


@pytest.mark.parametrize("driver", ["nvidia", "nouveau", "vfio-pci", None])
@pytest.mark.parametrize("kind", ["30000", "30200"])
def test_a_gpu_and_who_holds_it(driver, kind):
    text = f"PCI_CLASS={kind}\nPCI_ID=10DE:2335\n" + (f"DRIVER={driver}\n" if driver else "")
    assert gpus(text) == (PciGpu(address="0000:3b:00.0", driver=driver),)


def test_a_virtual_function_is_a_virtual_machine_s():
    bus = "/sys/bus/pci/devices/0000:3b:00.4"
    files = {f"{bus}/uevent": "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n", f"{bus}/physfn/uevent": ""}
    assert facts_of("cpu-only", files=files).pci_gpus == ()


@pytest.mark.parametrize("text", [AUDIO, OTHER_MAKER, SWITCH, "", "garbage"])
def test_what_is_no_nvidia_gpu(text):
    assert gpus(text) == ()


def test_a_bus_that_cannot_be_seen_is_a_gap():
    found = facts_of("cpu-only", files={"/sys/bus/pci/devices/0000:00:00.0/uevent": None})
    assert found.pci_gpus is None
    assert [gap.fact for gap in found.gaps] == ["pci_gpus"]


def test_a_class_that_is_no_number_is_a_gap():
    assert gpus("PCI_CLASS=many\nPCI_ID=10DE:2335\n") is None


@pytest.mark.parametrize(
    ("address", "nvml", "equal"),
    [
        ("0000:3b:00.0", "00000000:3B:00.0", True),
        ("10000:3b:00.0", "00010000:3B:00.0", True),
        ("0000:3b:00.0", "0000:3b:00.0", True),
        ("0000:3b:00.0", "00000000:3C:00.0", False),
    ],
)
def test_nvml_writes_longer_domains(address, nvml, equal):
    assert same(address, nvml) is equal
