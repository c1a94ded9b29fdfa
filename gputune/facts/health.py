"""A GPU's condition: its errors, links, limits and modes, mostly one NVML call each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gputune.facts import cpu_list
from gputune.facts._nvml_answers import field_value, flag, mask, one_of, positive, sequence, watts, whole
from gputune.facts.gap import Gaps
from gputune.host import Nvml, Unreadable
from gputune.host.nvml import BREAKING

# Numbers of nvml.h.
COMPUTE_MODES = ("default", "exclusive thread", "prohibited", "exclusive process")
FABRIC_STATES = ("not supported", "not started", "in progress", "completed")
FABRIC_TROUBLES = ("degraded bandwidth", "route recovery", "unhealthy route", "access timeout recovery")
FABRIC_CONFIGURATIONS = (
    "", "", "a wrong system GUID", "a wrong chassis serial number", "no partition", "insufficient NVLinks",
    "incompatible GPU firmware", "an invalid location", "an invalid GPU state",
)  # fmt: skip
"""The fault in a GPU's configuration, by the value of the mask's bits 8 to 11; 0 is not reported, 1 nothing."""
FABRIC_LINKS = ("no assigned partition", "a disconnected fabric manager")
"""The meaning of the value 2 in the mask's bits 12 and 13, and in its bits 14 and 15."""
RECOVERY_ACTIONS = (
    "none", "gpu reset", "node reboot", "drain P2P", "drain and reset", "recover IMEX domain", "bus reset",
    "system reboot",
)  # fmt: skip
_RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_SM_CLOCK, _MEMORY_CLOCK = 1, 2
_SLOWDOWN = 1
_UNCORRECTED = 1
_VOLATILE, _AGGREGATE = 0, 1
_MOST_LINKS = 36
_SWITCH = 2
_AFFINITY_WORDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A GPU's condition. None means not read; `Facts.gaps` has the reason as `gpu.<index>.<field>`."""

    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    sm_clock_application_mhz: int | None = None
    """The clock set with `nvidia-smi -ac`."""
    sm_clock_application_default_mhz: int | None = None
    memory_clock_mhz: int | None = None
    clocks_event_reasons: int | None = None
    """NVML's bit mask of what holds the clock down at this moment, usually idleness."""
    power_usage_watts: float | None = None
    power_limit_watts: float | None = None
    power_default_limit_watts: float | None = None
    power_enforced_limit_watts: float | None = None
    """The lowest of all limits, including those of the board and of the rack's power management."""
    temperature_celsius: int | None = None
    temperature_slowdown_celsius: int | None = None
    pcie_generation: int | None = None
    """The current generation; an idle link falls back to a lower one."""
    pcie_generation_max: int | None = None
    """The highest generation that card and slot both support."""
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    """The number of lanes that card and slot both have."""
    ecc: bool | None = None
    ecc_pending: bool | None = None
    """ECC is on after the next reset or reboot."""
    ecc_default: bool | None = None
    """The card was shipped with ECC on."""
    ecc_uncorrected: int | None = None
    """Uncorrectable memory errors since the driver was loaded."""
    ecc_uncorrected_ever: int | None = None
    row_remap_pending: bool | None = None
    row_remap_failed: bool | None = None
    page_retirement_pending: bool | None = None
    persistence_mode: bool | None = None
    compute_mode: str | None = None
    mig: bool | None = None
    mig_pending: bool | None = None
    processes: int | None = None
    """Compute processes, with MPS clients, that are no graphics processes. A container may not see those outside it."""
    graphics_processes: int | None = None
    """The number of processes with a graphics context: a desktop's, its browser's, or a renderer's."""
    graphics_memory_bytes: int | None = None
    """The memory that the graphics processes use together; None if NVML does not tell it of each."""
    display_active: bool | None = None
    """A display server (Xorg) has initialised its display outputs, whether or not a monitor is attached."""
    recovery_action: str | None = None
    """The action, one of RECOVERY_ACTIONS, that NVML asks for so that this GPU works again; None with older drivers."""
    nvlinks_up: tuple[bool, ...] | None = None
    """For each NVLink, in order, whether it is up."""
    nvswitch: bool | None = None
    """The NVLinks lead to an NVSwitch; None if no link is up."""
    fabric_state: str | None = None
    """The state of Fabric Manager's registration of this GPU."""
    fabric_status: int | None = None
    """NVML's error number for that registration; 0 for success."""
    fabric_troubles: tuple[str, ...] | None = None
    cpu_affinity: str | None = None
    """The CPUs of the GPU's NUMA node, in the kernel's list format (`0-15,64-79`)."""


def read(nvml: Nvml, index: int, gaps: Gaps) -> Health:
    def ask(field: str, reader: Callable[[], Any]) -> Any:
        return gaps.read(f"gpu.{index}.{field}", reader)

    def call(field: str) -> Any:
        then, name, *args = _CALLS[field]
        return ask(field, lambda: then(nvml.device(index, name, *args)))

    links = ask("nvlinks_up", lambda: _links(nvml, index))
    graphics = ask("graphics_processes", lambda: _graphics(nvml, index))
    return Health(
        **{field: call(field) for field in _CALLS},
        clocks_event_reasons=ask("clocks_event_reasons", lambda: clocks_event_reasons(nvml, index)),
        processes=ask("processes", lambda: len(_computing(nvml, index) - set(graphics or ()))),
        graphics_processes=None if graphics is None else len(graphics),
        graphics_memory_bytes=None if graphics is None or None in graphics.values() else sum(graphics.values()),
        nvlinks_up=links,
        nvswitch=ask("nvswitch", lambda: _switched(nvml, index, links)) if links else None,
    )


def clocks_event_reasons(nvml: Nvml, index: int) -> int:
    """NVML's bit mask of what holds the clock down. Older drivers have the call under an older name."""
    try:
        return whole(nvml.device(index, "CurrentClocksEventReasons"))
    except Unreadable as error:
        if error.cause in BREAKING:
            raise
        return whole(nvml.device(index, "CurrentClocksThrottleReasons"))


def _links(nvml: Nvml, index: int) -> tuple[bool, ...]:
    """Each link's state, up to the first number that NVML rejects. Raises if that is 0: a GPU without NVLink."""
    states: list[bool] = []
    for link in range(_MOST_LINKS):
        try:
            states.append(flag(nvml.device(index, "NvLinkState", link)))
        except Unreadable as error:
            if not states or error.cause not in ("invalid_argument", "not_supported"):
                raise
            break
    return tuple(states)


def _switched(nvml: Nvml, index: int, links: tuple[bool, ...]) -> bool:
    up = next((link for link, state in enumerate(links) if state), None)
    if up is None:
        raise Unreadable("no NVLink is up that could lead to one")
    return whole(nvml.device(index, "NvLinkRemoteDeviceType", up)) == _SWITCH


def _troubles(mask: int) -> tuple[str, ...]:
    """The names of the faults in a mask of several fields, in which 0 is "not reported"; of unknown ones the numbers.
    In the first four 1 is the fault and 2 its absence; in the last two it is the other way round.
    """
    pairs = [(name, mask >> 2 * place & 0b11, 1) for place, name in enumerate(FABRIC_TROUBLES)]
    links = [(name, mask >> 12 + 2 * place & 0b11, 2) for place, name in enumerate(FABRIC_LINKS)]
    configuration, beyond = mask >> 8 & 0b1111, mask >> 16
    names = dict(enumerate(FABRIC_CONFIGURATIONS))
    wrong = [names.get(configuration, f"an incorrect configuration ({configuration})")] if configuration > 1 else []
    odd = [f"faults of unknown meaning (0x{beyond << 16:x})"] if beyond else []
    return *_present(pairs), *wrong, *_present(links), *odd


def _present(fields: list[tuple[str, int, int]]) -> list[str]:
    """The names of the fields whose value is that of the fault, and those with a value that has no meaning."""
    return [name if value == fault else f"{name} ({value})" for name, value, fault in fields if value in (fault, 3)]


def _graphics(nvml: Nvml, index: int) -> dict[int, int | None]:
    """By each graphics process's id the bytes that it uses, or None if NVML does not tell."""
    listed = sequence(nvml.device(index, "GraphicsRunningProcesses"))
    used = {whole(process["pid"]): process.get("usedGpuMemory") for process in listed}
    return {pid: None if size is None else whole(size) for pid, size in used.items()}


def _computing(nvml: Nvml, index: int) -> set[int]:
    def pids_of(call: str) -> set[int]:
        return {whole(process["pid"]) for process in sequence(nvml.device(index, call))}

    pids = pids_of("ComputeRunningProcesses")
    try:
        pids |= pids_of("MPSComputeRunningProcesses")
    except Unreadable as error:
        if error.cause in BREAKING or not pids:  # there may be MPS clients, so that 0 would be a guess
            raise
    return pids


_CALLS: dict[str, tuple[Any, ...]] = {
    "sm_clock_mhz": (whole, "ClockInfo", _SM_CLOCK),
    "sm_clock_max_mhz": (positive, "MaxClockInfo", _SM_CLOCK),
    "sm_clock_application_mhz": (whole, "ApplicationsClock", _SM_CLOCK),
    "sm_clock_application_default_mhz": (whole, "DefaultApplicationsClock", _SM_CLOCK),
    "memory_clock_mhz": (whole, "ClockInfo", _MEMORY_CLOCK),
    "power_usage_watts": (watts, "PowerUsage"),
    "power_limit_watts": (watts, "PowerManagementLimit"),
    "power_default_limit_watts": (watts, "PowerManagementDefaultLimit"),
    "power_enforced_limit_watts": (watts, "EnforcedPowerLimit"),
    "temperature_celsius": (whole, "Temperature", 0),
    "temperature_slowdown_celsius": (positive, "TemperatureThreshold", _SLOWDOWN),
    "pcie_generation": (positive, "CurrPcieLinkGeneration"),
    "pcie_generation_max": (positive, "MaxPcieLinkGeneration"),
    "pcie_width": (positive, "CurrPcieLinkWidth"),
    "pcie_width_max": (positive, "MaxPcieLinkWidth"),
    "ecc": (lambda modes: flag(sequence(modes, 2)[0]), "EccMode"),
    "ecc_pending": (lambda modes: flag(sequence(modes, 2)[1]), "EccMode"),
    "ecc_default": (lambda modes: flag(sequence(modes, 1)[0]), "DefaultEccMode"),
    "ecc_uncorrected": (whole, "TotalEccErrors", _UNCORRECTED, _VOLATILE),
    "ecc_uncorrected_ever": (whole, "TotalEccErrors", _UNCORRECTED, _AGGREGATE),
    "row_remap_pending": (lambda rows: flag(sequence(rows, 4)[2]), "RemappedRows"),
    "row_remap_failed": (lambda rows: flag(sequence(rows, 4)[3]), "RemappedRows"),
    "page_retirement_pending": (flag, "RetiredPagesPendingStatus"),
    "persistence_mode": (flag, "PersistenceMode"),
    "compute_mode": (one_of(COMPUTE_MODES), "ComputeMode"),
    "display_active": (flag, "DisplayActive"),
    "mig": (lambda modes: flag(sequence(modes, 2)[0]), "MigMode"),
    "mig_pending": (lambda modes: flag(sequence(modes, 2)[1]), "MigMode"),
    "fabric_state": (lambda info: one_of(FABRIC_STATES)(info["state"]), "GpuFabricInfoV"),
    "fabric_status": (lambda info: whole(info["status"]), "GpuFabricInfoV"),
    "fabric_troubles": (lambda info: _troubles(whole(info["healthMask"])), "GpuFabricInfoV"),
    "recovery_action": (
        lambda answer: one_of(RECOVERY_ACTIONS)(field_value(answer)),
        "FieldValues",
        [_RECOVERY_ACTION],
    ),
    "cpu_affinity": (lambda words: cpu_list.text(mask(words)), "CpuAffinity", _AFFINITY_WORDS),
}
"""For each field that one NVML call gives: the converter of its answer, the call and its arguments."""


def call_of(field: str) -> str:
    """The NVML call behind a field, by which fields of one answer are recognised; the field itself for all others."""
    return str(_CALLS[field][1:]) if field in _CALLS else field
