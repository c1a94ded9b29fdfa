"""If torch or NVML finds no GPU, can the device files be opened that all GPUs share?

NVML needs /dev/nvidiactl, and CUDA /dev/nvidia-uvm as well. A host that has not loaded nvidia-uvm, a container that was
started without it, and a cgroup that was written anew under a running container (as `systemctl daemon-reload` does) all
leave a GPU that is listed and cannot be used: error 999, or no GPU at all.

Source: NVIDIA, nvidia-modprobe(1); NVIDIA Container Toolkit, troubleshooting.
"""

from gputune.checks._answers import Finding, Findings, Measurements, counted, error, no_gpu, not_applicable, ok, warning
from gputune.checks._questions import cause, gpu_asked_for, nvidia_files
from gputune.checks._remedies import APPTAINER_GPUS, typed
from gputune.checks.cuda_visible_devices import hidden
from gputune.checks.library_path import torch_fails
from gputune.facts import Facts
from gputune.facts.visible_gpus import CONTROL, MEMORY

EMBEDDED = ("nvgpu", "Orin", "Thor", "Xavier", "Tegra")
NOT_OPENED = ("driver_not_loaded", "no_permission")
"""The causes of NVML's failure that a missing device file explains."""
AGAIN = "start the container again with NVIDIA's Container Toolkit, and with an option --device for each such file"


def check(facts: Facts, measurements: Measurements) -> Findings:
    if reason := _elsewhere(facts):
        yield not_applicable(reason)
    elif facts.libraries.device_count:
        yield ok(f"torch opens what it needs: it sees {counted(facts.libraries.device_count, 'GPU')}")
    else:
        found = [_judge(facts, path) for path in (CONTROL, MEMORY)]
        yield from [one for one in found if one] or [_no_complaint(facts)]


def _elsewhere(facts: Facts) -> str | None:
    given = nvidia_files(facts)
    embedded = facts.board or any(word in gpu.name for gpu in facts.gpus for word in EMBEDDED)
    absent = not given or cause(facts, "driver.nvml") == "driver_not_loaded"
    reasons = {
        "WSL has /dev/dxg instead": "/dev/dxg" in facts.container.gpu_device_files,
        "none of the GPUs' own device files may be opened either: see gpu_absent": (
            facts.container.forbidden_device_files and not given and not facts.gpus
        ),
        "an embedded GPU has other device files": embedded,
        "NVIDIA's driver is not loaded": not facts.driver.nvml and not facts.driver.kernel_version and absent,
        "no GPU was requested": not facts.gpus and not gpu_asked_for(facts),
        "CUDA_VISIBLE_DEVICES hides every GPU": hidden(facts),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), None)


def _judge(facts: Facts, path: str) -> Finding | None:
    missing, forbidden = path in facts.container.common_files_missing, path in facts.container.common_files_forbidden
    if not (missing or forbidden) or not _fails(facts, path):
        return None
    needs = "NVML cannot be used without it" if path == CONTROL else "CUDA cannot be used without it"
    message = f"{path} {'does not exist' if missing else 'may not be opened by this process'}: {needs}"
    tried = path == CONTROL or torch_fails(facts)
    return (error if tried else warning)(message, _remedy(facts, path, missing), path)


def _fails(facts: Facts, path: str) -> bool:
    """Something fails for which this file may be the reason. A file that is listed nowhere, though NVML opened it, is
    no reason, and nvidia-uvm is made by the first program that needs it.
    """
    forbidden = path in facts.container.common_files_forbidden
    if path == CONTROL:
        why = cause(facts, "driver.nvml")
        alone = MEMORY not in facts.container.common_files_missing  # else perhaps no file is listed that is there
        return not facts.driver.nvml and (forbidden or why in NOT_OPENED or (alone and why == "unknown_error"))
    if forbidden:
        return facts.libraries.cuda is not None or facts.libraries.torch is None
    return torch_fails(facts) and CONTROL not in facts.container.common_files_missing


def _remedy(facts: Facts, path: str, missing: bool) -> str:
    if facts.container.kind == "apptainer":
        return APPTAINER_GPUS
    if facts.container.kind == "kubernetes":
        return typed('kubectl delete pod "$HOSTNAME"', ends_jobs=True, note="its controller starts it anew")
    if facts.container.kind:
        return AGAIN
    if missing:
        return typed("sudo nvidia-modprobe -u -c=0", root=True, changes_node=True)
    if facts.scheduler.name == "slurm":
        return typed("srun --gpus=1 COMMAND", note="the job's cgroup forbids the file")
    note = "until the driver is loaded again; NVreg_DeviceFileMode=0666 in /etc/modprobe.d keeps it"
    return typed(f"sudo chmod 0666 {path}", root=True, changes_node=True, note=note)


def _no_complaint(facts: Facts) -> Finding:
    if facts.driver.nvml and CONTROL not in facts.container.common_files_forbidden:
        return ok("NVML opens what it needs")
    if facts.libraries.torch is None and cause(facts, "driver.nvml") is None:
        return no_gpu(facts)
    return not_applicable("what fails has another reason than these device files")
