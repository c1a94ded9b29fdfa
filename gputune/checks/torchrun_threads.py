"""Has torchrun left each rank one thread where it could have more?

torchrun exports OMP_NUM_THREADS=1 to its ranks when nothing is set and there are several: safe, and slow wherever the CPU
works (data preparation, optimizers on the CPU). Export it before torchrun starts.

Source: torch/distributed/run.py.
"""

from gputune.checks._answers import not_applicable, ok, warning
from gputune.checks._common import Facts, Findings, Measurements


def check(facts: Facts, measurements: Measurements) -> Findings:
    threads, budget = facts.environment.get("OMP_NUM_THREADS"), facts.cpu.budget
    if not facts.scheduler.torchrun or facts.scheduler.local_ranks == 1:
        yield not_applicable("this process is none of several ranks that torchrun started here")
    elif threads == "1" and budget > 1:
        message = f"torchrun gave each rank 1 thread, and there are {budget} CPUs for each"
        yield warning(message, f"OMP_NUM_THREADS={budget} torchrun ...", "OMP_NUM_THREADS")
    else:
        yield ok(f"each rank has OMP_NUM_THREADS={threads or 'not set'} of {budget} CPUs")
