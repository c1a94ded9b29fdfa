"""Check a GPU environment, measure what it can really do, and apply the settings that pay to any PyTorch program.

    import gputune

    for finding in gputune.check():  # looks, and changes nothing
        print(finding.severity, finding.message, finding.remedy)
    profile = gputune.probe(budget="quick")  # measures this machine; gputune.load(path) reads a stored profile

    tuning = gputune.apply("profile.yaml")  # sets torch's flags; the first line of a training script
    model = tuning.prepare(model)  # channels_last and torch.compile, where they pay for this kind of network
    loader = DataLoader(dataset, **tuning.dataloader_kwargs(dataset))
    with tuning.autocast():
        loss = loss_function(model(inputs), targets)

A program that nobody edits gets the same flags from the command line: `gputune apply profile.yaml -- python train.py`.
What the user set, by a variable or a flag, wins. `gputune --help` lists the verbs, `gputune explain NAME`
explains a setting, a check or a bench, and docs/design.md in the repository describes the architecture.

Importing gputune loads none of torch, NVML and rich; each function imports what it needs.
"""

from __future__ import annotations

# Nothing is imported for types: `python -m gputune` would look for it in the working folder first, before its start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from gputune.bench_process import Budget, MatmulShape, UserDataset
    from gputune.checks import Finding
    from gputune.knobs import Numerics
    from gputune.profile import Profile
    from gputune.progress import Progress
    from gputune.runtime.rows import Rows
    from gputune.runtime.tuning import Tuning
    from gputune.version import __version__

__all__ = ["__version__", "apply", "check", "load", "probe", "status", "verify_ranks"]


def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gputune.version import __version__

    return __version__


def check() -> tuple[Finding, ...]:
    """Return the findings of every check about this machine, without changing it or putting it under load.

    torch's flags and its number of threads are those of the calling program now, if it has imported torch; all else
    that torch knows is read in a fresh process of this interpreter.
    """
    import sys

    from gputune import checks, facts
    from gputune.host import Host

    return checks.run(facts.read(Host(), variables=checks.variables(), torch=sys.modules.get("torch")))


def probe(
    *,
    device: str = "auto",
    budget: Budget = "standard",
    only: Sequence[str] = (),
    shapes: Sequence[MatmulShape] = (),
    dataset: UserDataset | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Profile:
    """Measure this machine and return its profile, without writing it. The standard budget takes about a minute.

    `device` is auto, cpu, cuda, cuda:N, or all (every GPU of this node, at the same time). `only` names the benches to
    run. `shapes` are matrix products of your own (`gputune.bench_process.MatmulShape`), and `dataset` is a dataset of
    yours (`gputune.bench_process.UserDataset`). Raises UsageError or MeasureError.
    """
    from gputune import probing

    datasets = [dataset] if dataset else []
    request = probing.ProbeRequest(device=device, budget=budget, only=only, shapes=shapes, dataset=datasets)
    return probing.probe(request, progress=progress)


def load(path: str | Path) -> Profile:
    """Read and validate a profile. Raises ProfileError, whose one line names the file, the key and the remedy."""
    from gputune import profile

    return profile.load(path)


def apply(
    profile: str | Path | Profile,
    *,
    ignore_fingerprint: bool = False,
    numerics: Numerics | None = None,
    inject: bool = False,
) -> Tuning:
    """Apply a profile in this process, at the start of a script, and return a `Tuning` for the script's own code.

    `profile` is a path, a Profile, or `auto` for this machine's own. Choices that were measured on other hardware or
    another torch are skipped unless `ignore_fingerprint`, as are those that change results more than `numerics` allows
    (exact, rounding, tf32 or mixed). With `inject`, what would take lines of the script (mixed precision, the fused
    optimizer, channels_last, torch.compile) is put into its models after their first steps, within that limit; what
    the script does itself is not done twice. What the user set stays. Raises ProfileError.
    """
    from gputune.host.uncollected import uncollected

    with uncollected():
        from gputune.runtime import tuning

        return tuning.apply(profile, ignore_fingerprint=ignore_fingerprint, numerics=numerics, inject=inject)


def status() -> Rows:
    """Return the present state of each setting that `gputune apply` or `gputune.apply` brought into this process: a
    tuple of `Applied`, which prints as a table.
    """
    from gputune.runtime import in_process, rows

    return rows.Rows(in_process.rows_now().values())


def verify_ranks(tuning: Tuning | None = None, *, deadline_seconds: float = 30.0) -> dict[str, Any]:
    """Return the settings in effect in this process, read back from torch, after checking that all ranks have the same.

    Every rank of the default process group calls it, after init_process_group; with `tuning`, its choices for the
    script are compared too. It is no collective operation, so a missing rank cannot hang it: raises RankError within
    the deadline, naming the ranks that differ or did not answer.
    """
    from gputune.runtime import verify_ranks

    return verify_ranks.verify_ranks(tuning, deadline_seconds)
