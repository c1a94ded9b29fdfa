"""What NVML and torch say of each kind of GPU while it is healthy and idle, as plain data.

Figures are those of NVIDIA's data sheets: memory, multiprocessors, clocks, power, PCIe and links. What a kind does not
have answers `Not Supported`, as its driver does (consumer cards have no ECC, no row remapping and no MIG; laptops no
power limit; a vGPU leaves clocks, power and links to its host).
"""

from dataclasses import dataclass
from typing import Any

from recorded import NOT_SUPPORTED

NO = {"unreadable": NOT_SUPPORTED}
NO_CALL = {"unreadable": "NVML: Function Not Found"}
GIB = 1 << 30
TESLA, QUADRO_RTX, GEFORCE, VCS, RTX, NVIDIA, GEFORCE_RTX = 2, 12, 5, 9, 13, 14, 15
KEPLER, PASCAL, VOLTA, TURING, AMPERE, ADA, HOPPER, BLACKWELL = 2, 4, 5, 6, 7, 8, 9, 10
BARE, PASSED_THROUGH, VGPU = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Card:
    name: str
    brand: int
    architecture: int
    capability: tuple[int, int]
    memory_gib: float
    sms: int
    cores: int
    watts: int
    clock: int
    memory_clock: int
    pci: str
    """The device number on the PCI bus."""
    pcie: tuple[int, int] = (4, 16)
    """Generation and lanes."""
    slowdown: int = 90
    links: int = 0
    switched: bool = False
    ecc: bool | None = True
    """Whether ECC is on; None where the card has none."""
    mig: bool = False
    fabric: bool = False
    virtualization: int = BARE
    persistent: bool = True
    driver: str = "580.159.04"
    vga: bool = False
    """It is a display controller with outputs (PCI class 0300) and not a 3D controller (0302)."""

    @property
    def consumer(self) -> bool:
        return self.brand in (GEFORCE, GEFORCE_RTX)

    @property
    def old_driver(self) -> bool:
        return int(self.driver.split(".")[0]) < 510


def nvml_of(card: Card, index: int, bus: str, near: tuple[int, ...]) -> dict[str, Any]:
    domain, number, rest = bus.split(":")
    total, reserve = int(card.memory_gib * GIB), reserve_of(card)
    answers: dict[str, Any] = {
        "Name": card.name,
        "Brand": card.brand,
        "UUID": uuid_of(card, index),
        "PciInfo": {
            "busIdLegacy": bus.upper(), "domain": int(domain, 16), "bus": int(number, 16),
            "device": int(rest.split(".")[0], 16), "pciDeviceId": int(card.pci + "10DE", 16),
            "pciSubSystemId": 0, "busId": f"{domain.rjust(8, '0')}:{number}:{rest}".upper(),
        },
        "Architecture": card.architecture,
        "CudaComputeCapability": list(card.capability),
        "VirtualizationMode": card.virtualization,
        "MemoryInfo": {"total": total, "free": total - reserve, "used": reserve},
        "MemoryInfo:33554472": {
            "version": 33554472, "total": total, "reserved": reserve, "free": total - reserve, "used": 0,
        },
        "CurrentClocksEventReasons": 1,
        "CurrentClocksThrottleReasons": 1,
        "ClockInfo:1": 210, "ClockInfo:2": card.memory_clock, "MaxClockInfo:1": card.clock,
        "ApplicationsClock:1": card.clock, "DefaultApplicationsClock:1": card.clock,
        "PowerUsage": card.watts * 120, "PowerManagementLimit": card.watts * 1000,
        "PowerManagementDefaultLimit": card.watts * 1000, "EnforcedPowerLimit": card.watts * 1000,
        "Temperature:0": 34, "TemperatureThreshold:1": card.slowdown,
        "CurrPcieLinkGeneration": card.pcie[0], "MaxPcieLinkGeneration": card.pcie[0],
        "CurrPcieLinkWidth": card.pcie[1], "MaxPcieLinkWidth": card.pcie[1],
        "PersistenceMode": int(card.persistent), "ComputeMode": 0,
        "ComputeRunningProcesses": [], "MPSComputeRunningProcesses": [], "GraphicsRunningProcesses": [],
        "DisplayActive": 0,
        "CpuAffinity:64": _words(near), "NumaNodeId": 0,
        "NumGpuCores": card.cores, "VbiosVersion": f"96.00.{card.sms:02X}.00.01", "GspFirmwareVersion": card.driver,
        "FieldValues:[230]": recovery(0),
        **_memory_of(card), **_links_of(card), **_mig_of(card),
    }  # fmt: skip
    return answers | _lacking(card)


def recovery(action: int) -> list[dict[str, Any]]:
    """nvmlDeviceGetFieldValues for NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, as nvidia-ml-py gives it."""
    value = {"uiVal": action, "ulVal": action, "ullVal": action, "sllVal": action, "siVal": action, "usVal": action}
    return [{
        "fieldId": 230, "scopeId": 0, "timestamp": 0, "latencyUsec": 0, "valueType": 1, "nvmlReturn": 0,
        "value": value | {"dVal": 0.0},
    }]  # fmt: skip


def field_not_supported() -> list[dict[str, Any]]:
    """The same where the GPU does not have that field: the call succeeds and the field carries the error."""
    return [{**recovery(0)[0], "nvmlReturn": 3}]


def uuid_of(card: Card, index: int) -> str:
    return f"GPU-{int(card.pci, 16):08x}-0000-4000-8000-{(index + 1) * 0x1111:012x}"


def reserve_of(card: Card) -> int:
    """The memory that the driver keeps to itself, which torch does not count: 0.6 GiB on an H200, less on others."""
    return min(600 << 20, int(card.memory_gib * GIB) // 50)


def torch_of(card: Card, index: int) -> dict[str, Any]:
    major, minor = card.capability
    return {
        "name": card.name, "uuid": uuid_of(card, index).removeprefix("GPU-"), "major": major, "minor": minor,
        "total_memory": int(card.memory_gib * GIB) - reserve_of(card), "multi_processor_count": card.sms,
    }  # fmt: skip


def _memory_of(card: Card) -> dict[str, Any]:
    if card.ecc is None:
        calls = ("EccMode", "DefaultEccMode", "TotalEccErrors:1,0", "TotalEccErrors:1,1", "RemappedRows",
                 "RetiredPagesPendingStatus")  # fmt: skip
        return dict.fromkeys(calls, NO)
    counts: Any = 0 if card.ecc else NO
    retires = card.architecture < AMPERE
    return {
        "EccMode": [int(card.ecc), int(card.ecc)],
        "DefaultEccMode": [int(card.ecc)],
        "TotalEccErrors:1,0": counts, "TotalEccErrors:1,1": counts,
        "RemappedRows": NO if retires else [0, 0, 0, 0],
        "RetiredPagesPendingStatus": 0 if retires else NO,
    }  # fmt: skip


def _links_of(card: Card) -> dict[str, Any]:
    fabric = {"clusterUuid": [0] * 16, "status": 0, "cliqueId": 0, "state": 3, "healthMask": 0}
    links: dict[str, Any] = {f"NvLinkState:{link}": 1 for link in range(card.links)}
    links[f"NvLinkState:{card.links}"] = {"unreadable": "NVML: Invalid Argument"} if card.links else NO
    if card.links:
        links["NvLinkRemoteDeviceType:0"] = 2 if card.switched else 0
    return links | {"GpuFabricInfoV": fabric if card.fabric else NO}


def _mig_of(card: Card) -> dict[str, Any]:
    return {"MigMode": [0, 0] if card.mig else NO}


def _lacking(card: Card) -> dict[str, Any]:
    lacks: dict[str, Any] = {}
    if card.consumer or card.brand == RTX:
        lacks |= dict.fromkeys(("ApplicationsClock:1", "DefaultApplicationsClock:1"), NO)
    if card.old_driver:
        new = ("CurrentClocksEventReasons", "MemoryInfo:33554472", "FieldValues:[230]", "GpuFabricInfoV",
               "NumGpuCores", "GspFirmwareVersion")  # fmt: skip
        lacks |= dict.fromkeys(new, NO_CALL)
    if card.virtualization == VGPU:
        kept = ("TotalEccErrors:1,0", "TotalEccErrors:1,1", "RemappedRows", "MigMode", "PowerUsage",
            "EnforcedPowerLimit",
                "PowerManagementLimit", "PowerManagementDefaultLimit", "Temperature:0", "TemperatureThreshold:1",
                "CurrPcieLinkGeneration", "MaxPcieLinkGeneration", "CurrPcieLinkWidth", "MaxPcieLinkWidth",
                "ApplicationsClock:1", "DefaultApplicationsClock:1", "PersistenceMode", "VbiosVersion")  # fmt: skip
        lacks |= dict.fromkeys(kept, NO) | {"FieldValues:[230]": field_not_supported()}
    if card.architecture < TURING:
        lacks["GspFirmwareVersion"] = NO
    return lacks


def _words(cpus: tuple[int, ...]) -> list[int]:
    words = [0] * 64
    for cpu in cpus:
        words[cpu // 64] |= 1 << cpu % 64
    return words


CARDS = {
    "k80": Card(
        name="Tesla K80", brand=TESLA, architecture=KEPLER, capability=(3, 7), memory_gib=11.2, sms=13, cores=2496,
        watts=149, clock=875, memory_clock=2505, pci="102D", pcie=(3, 16), slowdown=88, driver="470.256.02",
    ),
    "p100": Card(
        name="Tesla P100-PCIE-16GB", brand=TESLA, architecture=PASCAL, capability=(6, 0), memory_gib=16, sms=56,
        cores=3584, watts=250, clock=1328, memory_clock=715, pci="15F8", pcie=(3, 16), slowdown=82,
    ),
    "v100": Card(
        name="Tesla V100-SXM2-32GB", brand=TESLA, architecture=VOLTA, capability=(7, 0), memory_gib=32, sms=80,
        cores=5120, watts=300, clock=1530, memory_clock=877, pci="1DB5", pcie=(3, 16), slowdown=87, links=6,
    ),
    "t4": Card(
        name="Tesla T4", brand=NVIDIA, architecture=TURING, capability=(7, 5), memory_gib=15, sms=40, cores=2560,
        watts=70, clock=1590, memory_clock=5001, pci="1EB8", pcie=(3, 16), slowdown=93,
        virtualization=PASSED_THROUGH,
    ),
    "gtx1660": Card(
        name="NVIDIA GeForce GTX 1660 Ti", brand=GEFORCE, architecture=TURING, capability=(7, 5), memory_gib=6, sms=24,
        cores=1536, watts=120, clock=2130, memory_clock=6001, pci="2182", pcie=(3, 16), slowdown=93, ecc=None,
        persistent=False, vga=True,
    ),
    "rtx3090": Card(
        name="NVIDIA GeForce RTX 3090", brand=GEFORCE, architecture=AMPERE, capability=(8, 6), memory_gib=24, sms=82,
        cores=10496, watts=350, clock=2100, memory_clock=9751, pci="2204", slowdown=95, ecc=None, persistent=False,
        vga=True,
    ),
    "rtx4090": Card(
        name="NVIDIA GeForce RTX 4090", brand=GEFORCE, architecture=ADA, capability=(8, 9), memory_gib=24, sms=128,
        cores=16384, watts=450, clock=3105, memory_clock=10501, pci="2684", slowdown=90, ecc=None, persistent=False,
        vga=True,
    ),
    "rtx5090": Card(
        name="NVIDIA GeForce RTX 5090", brand=GEFORCE, architecture=BLACKWELL, capability=(12, 0), memory_gib=32,
        sms=170, cores=21760, watts=575, clock=3090, memory_clock=14001, pci="2B85", pcie=(5, 16), ecc=None,
        persistent=False, vga=True,
    ),
    "a100_sxm": Card(
        name="NVIDIA A100-SXM4-80GB", brand=NVIDIA, architecture=AMPERE, capability=(8, 0), memory_gib=80, sms=108,
        cores=6912, watts=400, clock=1410, memory_clock=1593, pci="20B2", slowdown=89, links=12, switched=True,
        mig=True,
    ),
    "a100_pcie": Card(
        name="NVIDIA A100-PCIE-40GB", brand=NVIDIA, architecture=AMPERE, capability=(8, 0), memory_gib=40, sms=108,
        cores=6912, watts=250, clock=1410, memory_clock=1215, pci="20F1", slowdown=92, mig=True,
    ),
    "a10g": Card(
        name="NVIDIA A10G", brand=NVIDIA, architecture=AMPERE, capability=(8, 6), memory_gib=22.5, sms=80, cores=9216,
        watts=300, clock=1710, memory_clock=6251, pci="2237", virtualization=PASSED_THROUGH,
    ),
    "a10_vgpu": Card(
        name="NVIDIA A10-12C", brand=VCS, architecture=AMPERE, capability=(8, 6), memory_gib=12, sms=72, cores=9216,
        watts=150, clock=1695, memory_clock=6251, pci="2236", virtualization=VGPU,
    ),
    "l4": Card(
        name="NVIDIA L4", brand=NVIDIA, architecture=ADA, capability=(8, 9), memory_gib=23, sms=58, cores=7424,
        watts=72, clock=2040, memory_clock=6251, pci="27B8", slowdown=91,
    ),
    "l40s": Card(
        name="NVIDIA L40S", brand=NVIDIA, architecture=ADA, capability=(8, 9), memory_gib=45, sms=142, cores=18176,
        watts=350, clock=2520, memory_clock=9001, pci="26B9", slowdown=92,
    ),
    "h100": Card(
        name="NVIDIA H100 80GB HBM3", brand=NVIDIA, architecture=HOPPER, capability=(9, 0), memory_gib=79.6, sms=132,
        cores=16896, watts=700, clock=1980, memory_clock=2619, pci="2330", pcie=(5, 16), slowdown=87, links=18,
        switched=True, fabric=True, mig=True,
    ),
    "h200": Card(
        name="NVIDIA H200", brand=NVIDIA, architecture=HOPPER, capability=(9, 0), memory_gib=140.4, sms=132,
        cores=16896, watts=700, clock=1980, memory_clock=3201, pci="2335", pcie=(5, 16), slowdown=89, links=18,
        switched=True, fabric=True, mig=True, virtualization=PASSED_THROUGH,
    ),
    "b200": Card(
        name="NVIDIA B200", brand=NVIDIA, architecture=BLACKWELL, capability=(10, 0), memory_gib=179, sms=148,
        cores=18944, watts=1000, clock=1965, memory_clock=3996, pci="2901", pcie=(5, 16), slowdown=95, links=18,
        switched=True, fabric=True, mig=True,
    ),
    "rtx6000ada": Card(
        name="NVIDIA RTX 6000 Ada Generation", brand=RTX, architecture=ADA, capability=(8, 9), memory_gib=48, sms=142,
        cores=18176, watts=300, clock=3105, memory_clock=10001, pci="26B1", ecc=False, vga=True,
    ),
    "rtxpro6000": Card(
        name="NVIDIA RTX PRO 6000 Blackwell Workstation Edition", brand=RTX, architecture=BLACKWELL,
        capability=(12, 0), memory_gib=95.6, sms=188, cores=24064, watts=600, clock=3090, memory_clock=14001,
        pci="2BB1", pcie=(5, 16), ecc=True, mig=True, vga=True,
    ),
    "gh200": Card(
        name="NVIDIA GH200 480GB", brand=NVIDIA, architecture=HOPPER, capability=(9, 0), memory_gib=95.6, sms=132,
        cores=16896, watts=900, clock=1980, memory_clock=2619, pci="2342", pcie=(5, 16), mig=True,
    ),
    "gb200": Card(
        name="NVIDIA GB200", brand=NVIDIA, architecture=BLACKWELL, capability=(10, 0), memory_gib=184, sms=152,
        cores=19456, watts=1200, clock=2062, memory_clock=3996, pci="2941", pcie=(5, 16), slowdown=95, links=18,
        switched=True, fabric=True, mig=True,
    ),
    "laptop": Card(
        name="NVIDIA GeForce RTX 4060 Laptop GPU", brand=GEFORCE, architecture=ADA, capability=(8, 9), memory_gib=8,
        sms=24, cores=3072, watts=80, clock=3105, memory_clock=8001, pci="28A0", pcie=(4, 8), ecc=None,
        persistent=False, vga=True,
    ),
    "wsl": Card(
        name="NVIDIA GeForce RTX 3080", brand=GEFORCE, architecture=AMPERE, capability=(8, 6), memory_gib=10, sms=68,
        cores=8704, watts=320, clock=2100, memory_clock=9501, pci="2206", ecc=None, vga=True,
    ),
    "orin": Card(
        name="Orin", brand=NVIDIA, architecture=AMPERE, capability=(8, 7), memory_gib=29.9, sms=16, cores=2048,
            watts=60,
        clock=1300, memory_clock=3199, pci="0000", ecc=None,
    ),
}  # fmt: skip
