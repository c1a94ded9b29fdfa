"""Is the NVSwitch fabric between the GPUs ready?

On machines with NVSwitch the service nvidia-fabricmanager sets up the links between the GPUs. Until it has, CUDA fails
with error 802, "system not yet initialized". Its version must match the driver's exactly. For a virtual machine it may
run on the host.

Source: NVIDIA, Fabric Manager User Guide; nvmlDeviceGetGpuFabricInfo.
"""

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, error, judge_gpus, not_applicable, ok, unread, warning
from gputune.checks._questions import cause, gap
from gputune.facts import Facts, Gpu

BEFORE_HOPPER = ("Volta", "Turing", "Ampere", "Ada")
START = (
    "on the host: sudo systemctl restart nvidia-fabricmanager (in exactly the driver's version: %s), then "
    "nvidia-smi -q -i 0 | grep -A 2 Fabric"
)


def check(facts: Facts, measurements: Measurements) -> Findings:
    remedy = START % (facts.driver.version or "see nvidia-smi")
    failure = gap(facts, "libraries.devices")
    if facts.gpus and failure and failure.cause == "fabric_not_ready":
        yield error(f"torch cannot start: {failure.reason}", remedy, fact=failure.fact)
        return
    yield from judge_gpus(
        facts, lambda gpu: _judge(facts, gpu, remedy), "fabric_state", lacking=lambda gpu: _lacking(facts, gpu)
    )


def _judge(facts: Facts, gpu: Gpu, remedy: str) -> Finding:
    state, status = gpu.health.fabric_state, gpu.health.fabric_status
    if state == "not supported":
        return not_applicable("this GPU is not part of an NVSwitch fabric")
    if state != "completed":
        wait = "wait a minute; then " if state == "in progress" else ""
        return error(f"its registration with the NVSwitch fabric is {state}", wait + remedy)
    if status:
        return error(f"its registration with the NVSwitch fabric failed with NVML error {status}", remedy)
    if status is None or gpu.health.fabric_troubles is None:
        field = "fabric_status" if status is None else "fabric_troubles"
        return unread(facts, f"gpu.{gpu.index}.{field}", "how its registration with the NVSwitch fabric ended")
    if gpu.health.fabric_troubles:
        return warning(f"the NVSwitch fabric reports {', '.join(gpu.health.fabric_troubles)}", remedy)
    return ok("registered with the NVSwitch fabric")


def _lacking(facts: Facts, gpu: Gpu) -> str | None:
    if gpu.health.nvswitch is False or cause(facts, f"gpu.{gpu.index}.nvlinks_up") == "not_supported":
        return "no link of this GPU leads to an NVSwitch"
    if gpu.architecture in BEFORE_HOPPER and facts.libraries.device_count:
        return f"{gpu.architecture} does not report its fabric's state; torch can use the GPU, so the fabric is ready"
    return None
