"""Is this GPU divided into MIG slices?

With MIG on, programs use slices, each with a part of the multiprocessors and of the memory, and torch sees one slice
per process. A profile measured in a slice holds only for slices of that size, and a profile of the whole GPU holds for
no slice: probe in the kind of slice that the job gets.

Source: NVIDIA, Multi-Instance GPU User Guide.
"""

import shlex

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, not_read, ok, warning
from gputune.checks._questions import consumer_or_share
from gputune.checks._remedies import address_of, reset, typed
from gputune.facts.visible_gpus import VARIABLE

WITH_MIG = ("8.0", "9.0", "10.0", "10.3", "11.0", "12.0")
WORKSTATION_WITH_MIG = ("RTX PRO 4500", "RTX PRO 5000", "RTX PRO 6000")


def _lacking(gpu: Gpu) -> str | None:
    small = gpu.compute_capability == "12.0" and not any(name in gpu.name for name in WORKSTATION_WITH_MIG)
    if small or (gpu.compute_capability and gpu.compute_capability not in WITH_MIG):
        return f"{gpu.name} ({gpu.compute_capability}) has no MIG"
    return consumer_or_share(gpu)


@each_gpu("mig", lacking=_lacking)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    mig, pending = gpu.health.mig, gpu.health.mig_pending
    if pending is not None and mig != pending:
        message = f"MIG is {'on' if mig else 'off'}, and will be {'on' if pending else 'off'} after a reset"
        return warning(message, reset(gpu))
    if mig:
        message = "MIG is on: torch gets a slice of the GPU, and a profile holds for slices of one size"
        return warning(message, _remedy(facts, gpu))
    return not_read(facts, gpu, "mig_pending") or ok("MIG is off")


def _remedy(facts: Facts, gpu: Gpu) -> str:
    """Probe in a slice: the one that this process was given, or else the GPU's first."""
    which = address_of(gpu)
    below = f" | grep -A1 {shlex.quote(gpu.uuid)}" if gpu.uuid else ""  # nvidia-smi refuses -i together with -L
    first = f"{VARIABLE}=$(nvidia-smi -L{below} | grep -om1 'MIG-[^)]*') "
    probe = ("" if "MIG-" in facts.environment.get(VARIABLE, "") else first) + "gputune probe"
    undo = [f"sudo nvidia-smi mig -i {which} -{what}" for what in ("dci", "dgi")]
    whole = "; ".join([*undo, f"sudo nvidia-smi -i {which} -mig 0"])
    return typed(probe, note=f"in a slice as the job gets it; for the whole GPU, on the host, ending its jobs: {whole}")
