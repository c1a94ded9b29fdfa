"""Whether a DataLoader keeps its workers from one epoch to the next (`persistent_workers`) or starts them anew.

It saves their start at every epoch, which matters where epochs are short or a worker's first sample takes long, and
keeps their memory. What a program changes in its dataset between two epochs does not reach workers that are kept.

Source: PyTorch, "torch.utils.data".
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import NOT_MEASURED, TOO_FEW, choose, counted, decide, unmeasured
from ._loading_rows import loading_rows
from .dataloader_workers import NEARLY_BEST, bench_of, chosen_workers

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)

LEAST_PAIRS = 3
"""With so few it can already be said that next to nothing is saved: beside long epochs no more starts are timed."""


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if chosen_workers(facts, measurements) == 0:
        return choose(False, "no workers to keep")
    bench = bench_of(measurements)
    rows = {
        params.persistent_workers: (params, row) for params, row in loading_rows(measurements, bench, "epochs").items()
    }
    if True not in rows or False not in rows:
        return unmeasured(False, NOT_MEASURED)
    (params, kept), (_, renewed) = rows[True], rows[False]
    comparison = kept.against(renewed)
    epoch = f"an epoch of {params.epoch_seconds or 0:.3g} s"
    if comparison:
        return decide(comparison, (False, True), f"{epoch} with workers kept from the epoch before", bench)
    if min(len(kept.samples), len(renewed.samples)) < LEAST_PAIRS or kept.median >= NEARLY_BEST * renewed.median:
        return unmeasured(False, TOO_FEW)
    started = counted(params.workers, "worker")
    return choose(False, f"no gain: to start {started} is next to nothing beside {epoch}", None, bench)
