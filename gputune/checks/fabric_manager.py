"""Is the NVSwitch fabric between the GPUs ready and healthy?

On machines with NVSwitch the service nvidia-fabricmanager sets up the links between the GPUs. Until it has, CUDA fails
with error 802, "system not yet initialized". Its version must match the driver's exactly. For a virtual machine it may
run on the host, and for a rack on its switches. A GPU that the fabric refuses (a wrong configuration, no partition)
cannot exchange data with the others over NVLink: an error. One with degraded bandwidth, a route in recovery, or a
manager that is away for the moment still works, more slowly or without repair: a warning.

Source: NVIDIA, Fabric Manager User Guide; NVML, fabric definitions (NVML_GPU_FABRIC_HEALTH_MASK_*).
"""

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, error, judge_gpus, not_applicable, ok, unread, warning
from gputune.checks._questions import cause, gap
from gputune.checks._remedies import address_of, on_host
from gputune.facts import Facts, Gpu
from gputune.facts.health import FABRIC_CONFIGURATIONS, FABRIC_LINKS

BEFORE_HOPPER = ("Volta", "Turing", "Ampere", "Ada")
REFUSED = (*FABRIC_CONFIGURATIONS, FABRIC_LINKS[0])
"""The faults for which the fabric does not take a GPU in."""
RESTART = "sudo systemctl restart nvidia-fabricmanager"


def check(facts: Facts, measurements: Measurements) -> Findings:
    failure = gap(facts, "libraries.devices")
    if facts.gpus and failure and failure.cause == "fabric_not_ready":
        yield error(f"torch cannot start: {failure.reason}", _restart(facts, facts.gpus[0]), fact=failure.fact)
        return
    yield from judge_gpus(
        facts, lambda gpu: _judge(facts, gpu), "fabric_state", lacking=lambda gpu: _lacking(facts, gpu)
    )


def _restart(facts: Facts, gpu: Gpu, *first: str) -> str:
    version = facts.driver.version or "see nvidia-smi"
    return on_host(
        *first,
        RESTART,
        f"nvidia-smi -q -i {address_of(gpu)} | grep -A 12 Fabric",
        ends_jobs=True,
        note=f"drain it first; Fabric Manager must be in exactly the driver's version: {version}",
    )


def _judge(facts: Facts, gpu: Gpu) -> Finding:
    state, status = gpu.health.fabric_state, gpu.health.fabric_status
    if state == "not supported":
        return not_applicable("this GPU is not part of an NVSwitch fabric")
    if state != "completed":
        wait = ["sleep 60"] if state == "in progress" else []
        return error(f"its registration with the NVSwitch fabric is {state}", _restart(facts, gpu, *wait))
    if status:
        message = f"its registration with the NVSwitch fabric failed with NVML error {status}"
        return error(message, _restart(facts, gpu))
    if status is None or gpu.health.fabric_troubles is None:
        field = "fabric_status" if status is None else "fabric_troubles"
        return unread(facts, f"gpu.{gpu.index}.{field}", "how its registration with the NVSwitch fabric ended")
    if gpu.health.fabric_troubles:
        refused = any(trouble in REFUSED for trouble in gpu.health.fabric_troubles)
        message = f"the NVSwitch fabric reports {', '.join(gpu.health.fabric_troubles)}"
        return (error if refused else warning)(message, _restart(facts, gpu))
    return ok("registered with the NVSwitch fabric")


def _lacking(facts: Facts, gpu: Gpu) -> str | None:
    if gpu.health.nvswitch is False or cause(facts, f"gpu.{gpu.index}.nvlinks_up") == "not_supported":
        return "no link of this GPU leads to an NVSwitch"
    if gpu.architecture in BEFORE_HOPPER and facts.libraries.device_count:
        return f"{gpu.architecture} does not report its fabric's state; torch can use the GPU, so the fabric is ready"
    return None
