"""Has torchrun left each rank one thread although there are more CPUs?

torchrun exports OMP_NUM_THREADS=1 to its ranks if it is not set and there are several ranks: safe, but slow wherever
the CPU does work (data preparation, optimizers on the CPU). Export the variable before torchrun starts.

Source: torch/distributed/run.py.
"""

from gputune.checks._answers import Facts, Findings, Measurements, counted, not_applicable, ok, warning
from gputune.checks._remedies import typed


def check(facts: Facts, measurements: Measurements) -> Findings:
    threads, budget = facts.environment.get("OMP_NUM_THREADS"), facts.cpu.budget
    if not facts.scheduler.torchrun or facts.scheduler.local_ranks == 1:
        yield not_applicable("torchrun did not start several ranks on this node")
    elif threads == "1" and budget > 1:
        message = f"torchrun gave each rank 1 thread, although there are {budget} CPUs for each"
        remedy = typed(f"export OMP_NUM_THREADS={budget}", where="before torchrun starts")
        yield warning(message, remedy, "OMP_NUM_THREADS")
    else:
        yield ok(f"each rank has {counted(budget, 'CPU')}, and OMP_NUM_THREADS is {threads or 'not set'}")
