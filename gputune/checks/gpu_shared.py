"""Does the scheduler let other jobs share this GPU?

Slurm's shards and NVIDIA's MPS let several jobs use one GPU at once. Measurements then depend on the other jobs, and a
profile made from them is worthless: probe with a GPU of your own (`--gres=gpu:1`).

Source: Slurm, Generic Resource (GRES), sharding; NVIDIA, Multi-Process Service.
"""

from gputune.checks._answers import Facts, Findings, Measurements, no_gpu, ok, warning
from gputune.checks._remedies import typed

HOW = {
    "shard": ("a Slurm shard: other jobs use the same GPU", typed("#SBATCH --gres=gpu:1", note="instead of a shard")),
    "mps": (
        "CUDA_MPS variables are set: other programs may use the same GPU through MPS",
        typed("unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", note="at least for a probe"),
    ),
}


def check(facts: Facts, measurements: Measurements) -> Findings:
    if not facts.gpus:
        yield no_gpu(facts)
    elif facts.scheduler.gpu_sharing:
        yield warning(*HOW[facts.scheduler.gpu_sharing])
    else:
        yield ok("nothing suggests that a scheduler shares it")
