"""Healthy machines with every kind of GPU, built fresh for each test, and what changes them.

A `Machine` is what one process on it would read: NVML's and torch's answers, files, environment. A fault is a function
that changes one thing about it. Nothing here asks a check anything.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from faults.kinds import CARDS, GIB, NO, Card, nvml_of, torch_of
from recorded import MACHINES, RecordedHost, RecordedNvml

from gputune import checks, facts
from gputune.facts import Facts
from gputune.host import Unreadable

SITE = "/opt/torch/lib/python3.12/site-packages"
CU13 = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
CU126 = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
UPTIME_HOURS = 200
QUIET_LOG = "6,1,1000,-;Linux version 6.8.0\n3,355,568077,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64\n"


@cache
def _limits() -> str:
    recorded = json.loads((MACHINES / "nvidia-h200-x8" / "answers.json").read_text())["files"]
    return str(recorded["/proc/self/limits"])


@dataclass
class Machine:
    card: Card | None
    addresses: list[str] = field(default_factory=list)
    """The bus addresses of its GPUs, by NVML's index."""
    nvml: Any = None
    torch: Any = None
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    cpus: int = 64
    physical: int = 32
    affinity: list[int] = field(default_factory=list)
    shm_gib: float = 256
    shm_free_gib: float | None = None
    user: tuple[int, str | None, str | None] = (0, "root", "/root")
    denied: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    space: int = 1 << 40
    arm: bool = False
    busy_cpus: int = 0
    stolen_cpus: int = 0
    own_python: str = "/opt/torch/bin/python3"
    path_torch: str | None = f"{SITE}/torch"
    expected: int | None = None
    required: bool = False
    measurements: list[Any] = field(default_factory=list)
    wrap: Callable[[Any], Any] | None = None
    """Puts something between gputune and NVML's answers."""

    @property
    def gpus(self) -> list[dict[str, Any]]:
        devices: list[dict[str, Any]] = self.nvml["devices"]
        return devices

    def facts(self) -> Facts:
        options: dict[str, Any] = {"gpu_required": self.required, "variables": checks.variables()}
        if self.expected is not None:
            options["gpus_expected"] = self.expected
        return facts.read(MachineHost(self), **options)

    def findings(self) -> tuple[checks.Finding, ...]:
        return checks.run(self.facts(), self.measurements)


class MachineHost(RecordedHost):
    def __init__(self, machine: Machine) -> None:
        shm = int(machine.shm_gib * GIB) >> 12
        free = shm if machine.shm_free_gib is None else int(machine.shm_free_gib * GIB) >> 12
        recorded = json.loads((MACHINES / "cpu-only" / "answers.json").read_text())
        super().__init__(
            "cpu-only",
            environ=dict.fromkeys(recorded["env"]) | machine.env,
            files=dict.fromkeys(recorded["files"]) | machine.files,
            nvml=machine.nvml,
            torch=dict.fromkeys(recorded["torch"]) | {"gaps": {}} | machine.torch
            if isinstance(machine.torch, dict)
            else machine.torch,
            shm=[4096, 4096, shm, free, free, 1 << 20, 1 << 20, 1 << 20, 4096, 255],
            affinity=machine.affinity,
            user=machine.user,
            denied=tuple(machine.denied),
            closed=tuple(machine.closed),
            space=machine.space,
            own_python=machine.own_python,
            where={"folder": machine.path_torch},
        )
        self.counts = [machine.cpus, machine.physical]
        self.of = machine
        self.looks = 0

    def machine(self) -> str:
        return "aarch64" if self.of.arm else "x86_64"

    def nvml(self) -> Any:
        answers = super().nvml()
        return self.of.wrap(answers) if self.of.wrap else answers

    def read(self, path: str) -> str:
        if path == "/proc/stat" and (self.of.busy_cpus or self.of.stolen_cpus):
            self.looks += 1  # the clock goes on by a second with each look, and the kernel counts 100 ticks in it
            used = [100 * self.looks if cpu < self.of.busy_cpus else 0 for cpu in range(1024)]
            taken = [100 * self.looks if cpu < self.of.stolen_cpus else 0 for cpu in range(1024)]
            return "".join(f"cpu{cpu} {used[cpu]} 0 0 0 0 0 0 {taken[cpu]} 0 0\n" for cpu in range(1024))
        return super().read(path)


class Hanging:
    """NVML that hangs in one call: that call has no answer, and no later one is asked."""

    def __init__(self, answers: RecordedNvml, index: int, name: str) -> None:
        self.answers, self.index, self.name, self.hung = answers, index, name, False

    def _gone(self) -> None:
        if self.hung:
            why = f"nvmlDeviceGet{self.name} does not answer within 5 s"
            raise Unreadable(f"NVML: not asked, since {why}", "not_asked")

    def system(self, name: str) -> Any:
        self._gone()
        return self.answers.system(name)

    def count(self) -> int:
        self._gone()
        return self.answers.count()

    def device(self, index: int, name: str, *args: Any) -> Any:
        self._gone()
        if index == self.index and name == self.name:
            self.hung = True
            raise Unreadable(f"NVML: nvmlDeviceGet{name} does not answer within 5 s", "no_answer")
        return self.answers.device(index, name, *args)


class Counting:
    def __init__(self, answers: RecordedNvml, count: int | Unreadable) -> None:
        self.answers, self.counted = answers, count

    def system(self, name: str) -> Any:
        return self.answers.system(name)

    def count(self) -> int:
        if isinstance(self.counted, Unreadable):
            raise self.counted
        return self.counted

    def device(self, index: int, name: str, *args: Any) -> Any:
        if index >= len(self.answers.answers["devices"]):
            raise Unreadable("NVML: Invalid Argument", "invalid_argument")
        return self.answers.device(index, name, *args)


def torch_answers(card: Card | None, count: int, version: str, cuda: str | None, built: tuple[str, ...]) -> Any:
    major = cuda.split(".")[0] if cuda else None
    answers: dict[str, Any] = {
        "python": "3.12.3", "executable": "/opt/torch/bin/python3", "gaps": {}, "torch": version, "cuda": cuda,
        "folder": f"{SITE}/torch", "arch_list": list(built),
        "flags": {
            "matmul_tf32": False, "cudnn_tf32": True, "cudnn_enabled": True, "cudnn_benchmark": False,
            "cudnn_deterministic": False, "deterministic_algorithms": False, "anomaly_detection": False,
        },
        "threads": 32, "api_conflict": None,
        "compile": {
            "compiler": "/usr/bin/gcc", "compiler_cxx": "/usr/bin/g++", "headers": True,
            "include": "/usr/include/python3.12", "triton": "3.6.0" if cuda else None,
            "cache": "/tmp/torchinductor_root",
        },
        "pynvml": None,
    }  # fmt: skip
    if cuda and card:
        bundled = [f"{SITE}/nvidia/cublas/lib/libcublas.so.{major}", f"{SITE}/nvidia/cublas/lib/libcublasLt.so.{major}",
                   f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"]  # fmt: skip
        answers |= {
            "cudnn": 91900, "nccl": "2.28.9", "cublas": f"{major}.1.0", "cublaslt": f"{major}.1.0",
            "bundled": bundled, "loaded": list(bundled), "devices": [torch_of(card, index) for index in range(count)],
        }  # fmt: skip
    return answers


@dataclass(frozen=True)
class Plan:
    card: str
    count: int = 1
    cpus: int = 64
    buses: str = "1b 43 52 61 9d c3 d1 df"
    sockets: int = 1
    torch: tuple[str, str, tuple[str, ...]] = ("2.11.0+cu130", "13.0", CU13)
    cuda: int = 13000
    arm: bool = False
    memory_gib: int = 512
    desktop: bool = False


PLANS = {
    "k80": Plan("k80", 2, torch=("2.4.1", "11.4", ("sm_37",)), cuda=11040),
    "p100": Plan("p100", 1, torch=("2.6.0+cu126", "12.6", CU126), cuda=12080),
    "v100": Plan("v100", 4, torch=("2.8.0+cu126", "12.6", CU126), cuda=12080),
    "t4": Plan("t4", 1, cpus=8, buses="00", memory_gib=32),
    "gtx1660": Plan("gtx1660", 1, cpus=12, buses="01", memory_gib=32),
    "rtx3090": Plan("rtx3090", 2, cpus=32, memory_gib=128),
    "rtx4090": Plan("rtx4090", 1, cpus=32, buses="01", memory_gib=64, desktop=True),
    "rtx5090": Plan("rtx5090", 1, cpus=32, buses="01", memory_gib=64, desktop=True),
    "a100_sxm": Plan("a100_sxm", 8, cpus=128, sockets=2, memory_gib=1024),
    "a100_pcie": Plan("a100_pcie", 2),
    "a10g": Plan("a10g", 1, cpus=16, buses="00", memory_gib=64),
    "a10_vgpu": Plan("a10_vgpu", 1, cpus=16, buses="02", memory_gib=64),
    "l4": Plan("l4", 1, cpus=16, buses="00", memory_gib=64),
    "l40s": Plan("l40s", 4),
    "h100": Plan("h100", 8, cpus=192, sockets=2, memory_gib=2048),
    "h200_x1": Plan("h200", 1, cpus=16, buses="06", memory_gib=256),
    "h200_x4": Plan("h200", 4),
    "h200_x8": Plan("h200", 8, cpus=128, memory_gib=1024),
    "b200": Plan("b200", 8, cpus=224, sockets=2, memory_gib=2048),
    "rtx6000ada": Plan("rtx6000ada", 2, cpus=32, memory_gib=256),
    "rtxpro6000": Plan("rtxpro6000", 1, cpus=32, buses="01", memory_gib=128),
    "gh200": Plan("gh200", 1, cpus=72, buses="09", arm=True, memory_gib=480),
    "gb200": Plan("gb200", 4, cpus=144, arm=True, memory_gib=960),
    "laptop": Plan("laptop", 1, cpus=16, buses="01", memory_gib=32, desktop=True),
}


def machine(kind: str) -> Machine:
    if kind in _OTHERS:
        return _OTHERS[kind]()
    plan = PLANS[kind]
    card = CARDS[plan.card]
    version, cuda, built = plan.torch
    made = _host(plan.cpus, plan.memory_gib)
    made.card, made.arm = card, plan.arm
    made.addresses = [f"0000:{bus}:00.0" for bus in plan.buses.split()[: plan.count]]
    if plan.buses == "00":  # in a virtual machine
        made.addresses = ["0000:00:1e.0"]
    devices = []
    for index, bus in enumerate(made.addresses):
        socket = index * plan.sockets // plan.count
        share = plan.cpus // plan.sockets
        devices.append(nvml_of(card, index, bus, tuple(range(socket * share, (socket + 1) * share))))
        made.files[f"/dev/nvidia{index}"] = ""
        made.files[f"/sys/bus/pci/devices/{bus}/uevent"] = (
            f"DRIVER=nvidia\nPCI_CLASS={'30000' if card.vga else '30200'}\nPCI_ID=10DE:{card.pci}\n"
            f"PCI_SLOT_NAME={bus}\n"
        )
    made.nvml = {"DriverVersion": card.driver, "CudaDriverVersion_v2": plan.cuda, "devices": devices}
    made.torch = torch_answers(card, plan.count, version, cuda, built) | {"threads": made.physical}
    made.files |= dict.fromkeys(("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"), "") | {
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {card.driver}  Release\n",
        "/proc/modules": "nvidia_uvm 1826816 0 - Live 0x0\nnvidia 9715712 1 nvidia_uvm, Live 0x0\n",
        "/dev/kmsg": QUIET_LOG,
    }
    if card.switched:
        made.files["/dev/nvidia-nvswitchctl"] = ""
    if plan.desktop:
        _desktop(made)
    _ways_of(plan.card, devices)
    return made


def _ways_of(card: str, devices: list[dict[str, Any]]) -> None:
    if card == "rtx3090":  # without a bridge its links are inactive
        for device in devices:
            device.update({f"NvLinkState:{link}": 0 for link in range(4)})
            device["NvLinkState:4"] = {"unreadable": "NVML: Invalid Argument"}
    if card == "laptop":
        power = ("PowerManagementLimit", "PowerManagementDefaultLimit", "EnforcedPowerLimit")
        devices[0].update(dict.fromkeys(power, NO) | {"CurrPcieLinkGeneration": 1})


def _host(cpus: int, memory_gib: int) -> Machine:
    made = Machine(card=None, cpus=cpus, physical=max(1, cpus // 2), affinity=list(range(cpus)))
    kib = memory_gib << 20
    made.shm_gib = memory_gib / 2
    made.env = {"HOME": "/root", "PATH": "/opt/torch/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    flags = "fpu sse2 avx2 avx512f avx512_bf16"
    made.files = {
        "/proc/cpuinfo": f"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel Xeon\nflags\t\t: {flags}\n",
        "/proc/meminfo": f"MemTotal: {kib} kB\nMemFree: {kib - (8 << 20)} kB\nMemAvailable: {kib - (6 << 20)} kB\n",
        "/proc/self/cgroup": "0::/\n",
        "/proc/self/limits": _limits(),
        "/proc/self/status": "Name:\tpython\nCapEff:\t000001ffffffffff\n",
        "/proc/uptime": f"{UPTIME_HOURS * 3600}.00 100.00\n",
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids\n",
        "/sys/devices/system/cpu/online": f"0-{cpus - 1}\n",
        "/sys/bus/pci/devices/0000:00:00.0/uevent": "PCI_CLASS=60000\nPCI_ID=8086:0D57\nPCI_SLOT_NAME=0000:00:00.0\n",
        "/opt/torch/bin/python": "",
    }
    return made


def _desktop(made: Machine) -> None:
    gpu = made.gpus[0]
    drawn = (("Xorg", 300), ("gnome-shell", 200), ("firefox", 700))
    gpu["GraphicsRunningProcesses"] = [
        {"pid": 2000 + place, "usedGpuMemory": mib << 20} for place, (_, mib) in enumerate(drawn)
    ]
    gpu["MemoryInfo:33554472"]["used"] += 1200 << 20
    gpu["MemoryInfo"]["used"] += 1200 << 20
    made.user, made.env["HOME"], made.env["DISPLAY"] = (1000, "ann", "/home/ann"), "/home/ann", ":0"
    made.files |= {"/home/ann/.profile": "", "/proc/2000/comm": "Xorg\n", "/tmp/.X11-unix/X0": ""}
    gpu["DisplayActive"] = 1


def _wsl() -> Machine:
    card = CARDS["wsl"]
    made = _host(16, 32)
    made.card, made.addresses = card, ["0000:01:00.0"]
    device = nvml_of(card, 0, "0000:01:00.0", tuple(range(16))) | {"CpuAffinity:64": NO, "NumaNodeId": NO}
    made.nvml = {"DriverVersion": card.driver, "CudaDriverVersion_v2": 13000, "devices": [device]}
    made.torch = torch_answers(card, 1, "2.11.0+cu130", "13.0", CU13) | {"threads": 8}
    made.files |= {"/dev/dxg": "", "/dev/kmsg": "6,1,1000,-;Linux version 6.6.36-microsoft-standard-WSL2\n",
                   "/usr/lib/wsl/lib/libcuda.so.1": "",
                       "/proc/version": "Linux version 6.6.36-microsoft-standard\n"}  # fmt: skip
    del made.files["/sys/bus/pci/devices/0000:00:00.0/uevent"]
    made.files["/sys/bus/pci/devices/0000:00:01.0/uevent"] = "DRIVER=virtio-pci\nPCI_CLASS=60000\nPCI_ID=1414:008E\n"
    made.env["LD_LIBRARY_PATH"] = "/usr/lib/wsl/lib"
    return made


def _orin() -> Machine:
    """A Jetson AGX Orin on JetPack, whose integrated GPU is on no PCI bus and has no NVML."""
    card = CARDS["orin"]
    made = _host(12, 32)
    made.card, made.arm = card, True
    made.nvml = Unreadable("NVML: NVML Shared Library Not Found", "library_not_found")
    made.torch = torch_answers(card, 1, "2.8.0", "12.6", ("sm_87",)) | {"threads": 12}
    made.physical = 12
    made.files |= {
        "/dev/nvmap": "", "/dev/nvhost-gpu": "", "/dev/nvhost-ctrl-gpu": "", "/dev/nvgpu/igpu0/ctrl": "",
        "/etc/nv_tegra_release": "# R36 (release), REVISION: 4.0, GCID: 1, BOARD: generic, EABI: aarch64\n",
        "/proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\x00",
        "/proc/device-tree/compatible": "nvidia,p3737-0000+p3701-0000\x00nvidia,tegra234\x00",
    }  # fmt: skip
    return made


def _cpu_only() -> Machine:
    made = _host(16, 64)
    made.nvml = Unreadable("NVML: NVML Shared Library Not Found", "library_not_found")
    made.torch = torch_answers(None, 0, "2.11.0+cpu", None, ()) | {"threads": 8}
    return made


def recorded(folder: str) -> Machine:
    """A machine as it was recorded, in a container; what gputune asks for since then was not recorded."""
    answers = json.loads((MACHINES / folder / "answers.json").read_text())
    shm = answers["shm"]
    return Machine(
        card=CARDS["h200"],
        addresses=[gpu["PciInfo"]["busIdLegacy"].lower() for gpu in answers["nvml"]["devices"]],
        nvml=answers["nvml"], torch=answers["torch"], files=answers["files"], env=answers["env"],
        cpus=answers["cpu_counts"][0], physical=answers["cpu_counts"][1], affinity=answers["affinity"],
        shm_gib=shm[2] * shm[1] / GIB, shm_free_gib=shm[4] * shm[1] / GIB, user=tuple(answers["user"]),
        own_python=answers["torch"]["executable"], path_torch=answers["torch"]["folder"],
    )  # fmt: skip


_OTHERS: dict[str, Callable[[], Machine]] = {
    "wsl": _wsl,
    "orin": _orin,
    "cpu": _cpu_only,
    "recorded_x1": lambda: recorded("nvidia-h200-x1"),
    "recorded_x8": lambda: recorded("nvidia-h200-x8"),
}
KINDS = [*PLANS, *_OTHERS]
EMULATES_BFLOAT16 = ("k80", "p100", "v100", "t4", "gtx1660")
"""Kinds below compute capability 8.0: `bf16_emulated` says so of each of their GPUs, whatever their health."""
