"""If a GPU was requested, is there one, and can torch use it?

A GPU is requested by NVIDIA_VISIBLE_DEVICES, by a device file, by a scheduler's grant, or by `gputune check
--require-gpu`. Without one the job runs on the CPU, slowly and without an error. Start the container with `--gpus all`
(Kubernetes: `nvidia.com/gpu: 1` under resources.limits; Slurm: `--gpus=1`).

Source: NVIDIA Container Toolkit, environment variables; CUDA C++ Programming Guide, CUDA Environment Variables.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, counted, error, not_applicable, ok, unknown
from gputune.checks._questions import gap, gpu_asked_for, number, nvidia_files
from gputune.checks.cuda_visible_devices import hidden
from gputune.facts import Gap
from gputune.facts.visible_gpus import VARIABLE

GET_ONE: dict[str | None, str] = {
    "kubernetes": "resources: {limits: {nvidia.com/gpu: 1}} in the container of the pod",
    "slurm": "srun --gpus=1; on the node, see that nvidia-smi lists it",
    None: "see that nvidia-smi lists it; sudo dmesg | grep -i nvidia",
}
DOCKER = "docker run --gpus all, with the NVIDIA Container Toolkit on the host"
REASON = "python -c 'import torch; torch.cuda.init()' shows torch's reason"
WITH_COMPUTE = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; "


def check(facts: Facts, measurements: Measurements) -> Findings:
    seen = facts.libraries.device_count
    if facts.libraries.hip:
        yield not_applicable(f"torch {facts.libraries.torch} is built for AMD's GPUs, which gputune does not support")
    elif seen:
        yield ok(f"torch sees {counted(seen, 'GPU')}")
    elif facts.gpus:
        yield _listed(facts)
    else:
        yield _none(facts)


def _listed(facts: Facts) -> Finding:
    """The finding if NVML lists GPUs and torch sees none."""
    listed, failure = f"NVML lists {counted(len(facts.gpus), 'GPU')}", gap(facts, "libraries.devices")
    if hidden(facts):
        message = f"{listed}; {VARIABLE}={facts.environment.get(VARIABLE)!r} hides them from torch"
        return error(message, "unset CUDA_VISIBLE_DEVICES") if facts.gpu_required else not_applicable(message)
    if facts.libraries.device_count is None and failure is None:
        return ok(listed)  # no torch, or a build without CUDA: other checks say so
    if elsewhere := _elsewhere(facts, failure):
        return not_applicable(f"{listed}; {elsewhere}")
    message = f"{listed}, but torch can use none{f' ({failure.reason})' if failure else ''}"
    remedy = (WITH_COMPUTE if facts.container.kind else "") + REASON
    return error(message, remedy, fact=failure.fact if failure else None)


def _elsewhere(facts: Facts, failure: Gap | None) -> str | None:
    """The reason why torch cannot use the GPUs if another check complains about it; else None."""
    if failure and failure.cause == "fabric_not_ready":
        return "torch waits for Fabric Manager to set up their links: see fabric_manager"
    driver, torch = number(facts.driver.cuda), number(facts.libraries.cuda)
    if driver and torch and driver[0] < torch[0]:
        return f"the driver supports CUDA {facts.driver.cuda}, torch needs {facts.libraries.cuda}: see driver_cuda"
    return None


def _none(facts: Facts) -> Finding:
    if (asked := gpu_asked_for(facts)) and nvidia_files(facts) and hidden(facts):
        message = f"a GPU was requested ({', '.join(asked)}), but CUDA_VISIBLE_DEVICES hides it"
        return error(message, "unset CUDA_VISIBLE_DEVICES")
    if asked:
        return error(f"a GPU was requested ({', '.join(asked)}), but neither NVML nor torch finds one", _get_one(facts))
    if facts.container.gpu_device_files:
        return unknown("WSL's /dev/dxg may be any vendor's GPU; if it is NVIDIA's, its Windows driver does not answer")
    return not_applicable("no GPU was requested, and there is none")


def _get_one(facts: Facts) -> str:
    if facts.scheduler.name in ("kubernetes", "slurm"):
        return GET_ONE[facts.scheduler.name]
    return DOCKER if facts.container.kind else f"{GET_ONE[None]}; in a container: {DOCKER}"
