"""gputune: check a GPU environment, measure what it can really do, and apply the flags that pay.

**The flow, one direction.** A `Host` is read into `Facts`; benches turn Facts into `Measurements`; checks turn both into
`Findings`; settings turn both into `Choices` with reasons; together they are a `Profile`. The runtime applies a Profile;
reports show any of these. Only `host.py`, the bench worker, the settings' `apply` and `current`, and `runtime/` touch the
world; everything else is pure and is tested with plain data.

**The layers**, top to bottom; a module imports only from below (`|`: strangers to each other):

    cli | integrations
    report | deploy
    batch_sizing
    probing | runtime
    advise
    profile
    checks | benches
    settings
    measurement
    facts
    host
    errors | version

torch, pynvml and rich are imported inside functions only, and `gputune --help`, `apply` and `check` never import torch in
their own process: its facts come from a child process with a deadline.

**Where this differs from the first drawing of the house, and why.**

- `probing`, not `probe`: importing a submodule would put it in the place of the function `gputune.probe`.
- A profile is read straight from YAML's events (`profile/strict_yaml.py`): one pass refuses and builds, three times faster
  than building a tree after a scan, and without YAML 1.1's surprises.
- What was read is held against the dataclasses by `profile/strict_types.py`, and not by pydantic: importing and preparing that
  would take 60 of the 80 ms that `gputune.apply` may cost, and it collects all faults before the first can be said.
- A setting's row in `Applied` also says whose value holds (`source`), and `changed-later` is a status of its own.
- Launch settings travel to the shim as well, which only reads back what their variables made of torch.
- A profile's name in the cache leaves out counts (GPUs, CPUs), which a container or a rank has of its own.
- `omp_threads` is `rounding`: another number of threads adds in another order. Workers are `exact` but for a dataset that draws
  random numbers.
- `--numerics` is a limit; without it what follows by itself goes to `tf32`, and a line in the script may say `mixed`.
- `gputune.apply` takes `auto` too, and `GPUTUNE_REPORT=1` makes unchanged programs tell what they changed later.
- `facts/__init__` loads its subjects when they are used, and the command line only the verb that was asked for: both stand in the way
  of every `gputune apply`.
- Samples keep four significant digits: with three, rounding alone moves a 3 % gain by a third of it.
- Comparisons look at 12, 20 and 32 pairs: 32 is what a row of the profile holds, so that the file replays the decision.
- A setting may depend on `device`: the GPU's name, or the CPU's in a profile of a CPU. Otherwise a GPU's profile would be
  refused on the same GPU beside another CPU.
- A bench declares `SECONDS` for each kind of device and budget and its `RANK`; `needs(facts, device)` gives the reason why it
  cannot run. So the budget is planned without a list of benches.
- Comparisons of several arms are shuffled, the same way in every run: at its power limit a GPU runs an arm faster that
  always follows a light one.
- `batch_sizing.py` searches for the batch size of a user's own training step; it stands above `probing`, whose choice of a
  device and progress it shares, and its answer is no machine's and stands in no profile.
- Every part of a profile must be there, so that a file that was cut off is refused.
- `Choice.gain` is the alternative's ratio over torch's default also where the default is kept.
- Facts have three subjects more: the PCI bus (a GPU that NVML lost is still there), the process (user, limits, folders), and
  the set variables that torch and NVIDIA's libraries heed, by prefix, so that a check of another one touches its own file
  only. What a GPU is stands in `facts/gpu.py`, how it is in `facts/health.py`.
- A check yields Findings without its own name, which `checks.ask` fills in.
- Whole-number settings have `LIMITS`, so that a file can ask for neither -1 nor a million workers.
- A setting that differs by kind of network has `of_family` beside `recommend`. What is recommended for a network is one whole
  combination of its measured options (`settings/_training.py` has the rule), so that no setting's choice is taken apart
  from the others'; for a network of no known kind a setting needs to gain over all that were measured together.
- `cudnn_benchmark` and `sdpa_backend` are of the process and so have no family of their own.
- The worker imports torch while the machine is still being read: four seconds of a budget.
- A bench may yield a Gap beside its Measurements, and one of what only the user can name says so with `OPTION`.
- `burst` is measured in blocks between pauses: a card under load leaves its first clock after 40 ms.
- A multiple for padding must be outrun with certainty, by more than 5 %: full FP32, where alignment plays no part, differs by 4.
- DataLoaders that are compared live at once, and between its blocks a loader's workers are stopped (SIGSTOP), so that none
  fills its queues while another is timed.
- From fewer pairs than an exact interval takes, a number of workers is recommended where four pairs all say "half as fast
  again": slow samples leave time for no more.
- The DataLoader's settings do not rest on the CPU budget: `Tuning.dataloader_kwargs` scales them to the process's own.
- What holds for a whole bench (other processes, PCIe) stands in the conditions of its first row only.
- `gputune probe --device all` measures all GPUs of a kind at once (`probing/together.py`); by itself a probe takes the first, since
  the others of a machine may be somebody's. The common profile is that of one device as a whole, the one that differs least from
  the others, with every device's steady load beside it: a mixture of several would be no measured combination.
- `gputune merge` chooses among nodes by the same rule, so that all ranks of a job apply one file.
- Nodes that share a home folder each probe once where GPUTUNE_PROBE=missing, and the first file stays: all ranks take that.
- `gputune deploy` is a group of verbs, a place each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputune.version import __version__

if TYPE_CHECKING:
    from gputune.bench_process import Budget, MatmulShape, UserDataset
    from gputune.checks import Finding
    from gputune.inject.applied import Applied
    from gputune.probing import Progress
    from gputune.profile import Profile
    from gputune.runtime.tuning import Tuning
    from gputune.settings import Numerics

__all__ = ["__version__", "apply", "check", "load", "probe", "status", "verify_ranks"]


def check() -> tuple[Finding, ...]:
    """Look at this machine without changing or loading anything; what every check found.

    torch's facts come from another process of this interpreter, so that flags which this process has set do not show.
    """
    from gputune import checks, facts
    from gputune.host import Host

    return checks.run(facts.read(Host()))


def probe(
    *,
    device: str = "auto",
    budget: Budget = "standard",
    only: Sequence[str] = (),
    shapes: Sequence[MatmulShape] = (),
    dataset: UserDataset | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Profile:
    """Measure this machine (about a minute in the standard budget) and return its profile, unwritten.

    `device` is auto, cpu, cuda, cuda:N, or all: every GPU of this node, at once; `only` names benches; `shapes` are matmuls of
    your own (`gputune.bench_process.MatmulShape`), and `dataset` what you load
    (`gputune.bench_process.UserDataset`). Raises UsageError or
    MeasureError.
    """
    from gputune import probing

    datasets = [dataset] if dataset else []
    request = probing.Request(device=device, budget=budget, only=only, shapes=shapes, dataset=datasets)
    return probing.probe(request, progress=progress)


def load(path: str | Path) -> Profile:
    """Read a profile strictly. Raises ProfileError, one line that names the file, the key and the remedy."""
    from gputune import profile

    return profile.load(path)


def apply(
    profile: str | Path | Profile, *, ignore_fingerprint: bool = False, numerics: Numerics | None = None
) -> Tuning:
    """Apply a profile in this process, at the start of a script, and return what the script itself can use of it.

    `profile` is a path, or `auto` for the one of this machine. What was measured on another machine is skipped, unless
    `ignore_fingerprint`, and what changes results further than `numerics` (exact, rounding, tf32, mixed); what the user set
    stays. Raises ProfileError.
    """
    from gputune.host.uncollected import uncollected

    with uncollected():
        from gputune.runtime import tuning

        return tuning.apply(profile, ignore_fingerprint=ignore_fingerprint, numerics=numerics)


def status() -> tuple[Applied, ...]:
    """What gputune set in this process, below `gputune apply` or by `gputune.apply`, as it stands now."""
    from gputune.runtime import in_process

    return tuple(in_process.rows_now().values())


def verify_ranks(tuning: Tuning | None = None, *, deadline_seconds: float = 30.0) -> dict[str, Any]:
    """Compare the settings that are in effect here, read back from torch, with all other ranks' of the default process group.

    Returns them where all agree. Every rank calls it, after init_process_group; with `tuning`, its choices for the script are
    compared too. Never a collective: raises RankError, which names the ranks that differ or did not answer, within the deadline.
    """
    from gputune.runtime import verify_ranks

    return verify_ranks.verify_ranks(tuning, deadline_seconds)
