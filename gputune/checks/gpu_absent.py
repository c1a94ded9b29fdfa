"""Is the GPU here that was asked for, and can torch use it?

A GPU is asked for by NVIDIA_VISIBLE_DEVICES, by a device file, or by a scheduler's grant. If none shows, the job
runs on the CPU, slowly and without an error. Start the container with `--gpus all` (Kubernetes:
`nvidia.com/gpu: 1` under resources.limits; Slurm: `--gpus=1`). CUDA_VISIBLE_DEVICES hides GPUs from torch: empty or -1
hides all.

Source: NVIDIA Container Toolkit, environment variables; CUDA C++ Programming Guide, CUDA Environment Variables.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import gpu_beside, nvidia_files, reason
from gputune.facts import Facts
from gputune.measurement import Measurement

CHECK = "gpu_absent"
GET_ONE = (
    "docker run --gpus all (with the NVIDIA Container Toolkit on the host); in Kubernetes resources.limits nvidia.com/gpu: 1; "
    "in Slurm srun --gpus=1; on bare metal see that nvidia-smi lists the GPU"
)
LET_TORCH = (
    "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; "
    "python -c 'import torch; torch.cuda.init()' shows torch's own reason"
)


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    seen, visible = facts.libraries.device_count, facts.container.cuda_visible_devices
    if seen:
        yield Finding(check=CHECK, severity="OK", message=f"torch sees {_gpus(seen)}")
    elif gpu_beside(facts) and visible is not None and (seen == 0 or visible.strip() in ("", "-1")):
        yield Finding(
            check=CHECK,
            severity="WARNING",
            message=f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU from torch",
            remedy="unset CUDA_VISIBLE_DEVICES",
            subject="CUDA_VISIBLE_DEVICES",
        )
    elif facts.gpus:
        yield _listed(facts)
    else:
        yield _none(facts)


def _listed(facts: Facts) -> Finding:
    """NVML lists GPUs and torch shows none."""
    listed, failure = f"NVML lists {_gpus(len(facts.gpus))}", reason(facts, "libraries.devices")
    if (
        facts.libraries.device_count is None and failure is None
    ):  # no torch here, or none with CUDA: other checks say so
        return Finding(check=CHECK, severity="OK", message=listed)
    message = f"{listed}, but torch can use none{f' ({failure})' if failure else ''}"
    return Finding(check=CHECK, severity="ERROR", message=message, remedy=LET_TORCH)


def _none(facts: Facts) -> Finding:
    if asked := _asked(facts):
        message = f"a GPU was asked for ({', '.join(asked)}), but neither NVML nor torch shows one"
        return Finding(check=CHECK, severity="ERROR", message=message, remedy=GET_ONE)
    if facts.container.gpu_device_files:
        message = "WSL's /dev/dxg stands for a GPU of any maker; if it is NVIDIA's, its Windows driver does not answer"
        return Finding(check=CHECK, severity="UNKNOWN", message=message)
    return Finding(check=CHECK, severity="NOT_APPLICABLE", message="no GPU was asked for, and there is none")


def _asked(facts: Facts) -> list[str]:
    wanted = facts.container.nvidia_visible_devices
    signs = [f"NVIDIA_VISIBLE_DEVICES={wanted}"] if wanted and wanted not in ("none", "void") else []
    granted = (
        [f"{facts.scheduler.name or 'the scheduler'} granted {facts.scheduler.gpus}"] if facts.scheduler.gpus else []
    )
    return [*signs, *nvidia_files(facts), *granted]


def _gpus(count: int) -> str:
    return f"{count} GPU{'s' if count > 1 else ''}"
