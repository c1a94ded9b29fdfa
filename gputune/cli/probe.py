"""`gputune probe`: measure this machine and write its profile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gputune.cli import _choices
from gputune.errors import MeasureError, UsageError

if TYPE_CHECKING:
    from gputune.bench_process import UserDataset
    from gputune.host import Host
    from gputune.profile import Fingerprint, Profile

EPILOG = _choices.epilog("""
  # Measure this machine, and write profile.yaml
  gputune probe
  # In less time, with fewer benches
  gputune probe --budget quick -o quick.yaml
  # Also find the number of workers for your dataset
  gputune probe --dataset train.py:make_dataset
""", faults=_choices.UNWRITTEN)  # fmt: skip


def probe(
    output: Annotated[Path | None, _choices.output("The file to write; - is stdout.", "profile.yaml")] = None,
    device: Annotated[
        str,
        _choices.word(
            "DEVICE",
            "auto, cpu, cuda, cuda:N, or all: every GPU of this node at once.",
            lambda: ("auto", "cpu", "cuda", "all"),
            "--device",
        ),
    ] = "auto",
    budget: Annotated[
        str, _choices.word("BUDGET", "quick, standard or thorough.", _choices.budgets, "--budget")
    ] = "standard",
    only: Annotated[
        str,
        _choices.some_benches(
            "Run only these benches. What the file that it replaces has of the others is kept, if it is of this device "
            "(not with --device all)."
        ),
    ] = "",
    shapes: Annotated[
        Path | None,
        _choices.place("FILE", "Measure the matmuls of this file too: M N K and, optionally, a dtype in each line."),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            parser=_choices.name,
            metavar="FILE.py:CALLABLE",
            help="Measure this dataset or DataLoader too: path.py:callable or package.module:callable returns it.",
        ),
    ] = None,
    batch_size: Annotated[
        int | None, _choices.count("The batch size of a --dataset without its own.", "32", most=1 << 24)
    ] = None,
    step_ms: Annotated[
        float | None,
        typer.Option(
            metavar="MS",
            help="How long a training step works on each batch of --dataset, in ms.",
            min=0.001,
            max=3.6e6,
            show_default="none: batches are taken as fast as they come",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew, without what the latest probe of this machine chose.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON on stdout.")] = False,
) -> None:
    """Measure this machine, and write its profile.

    What the latest probe of this machine chose stands unless this one certainly contradicts it. The programs of a
    profile that it replaces are kept.
    """
    from gputune import probing
    from gputune.benches import matmul_shapes
    from gputune.cli._output import earlier, write, write_over
    from gputune.host.stderr import show
    from gputune.profile import dump_json, with_programs
    from gputune.report.progress import shown

    target = output if output or as_json else Path("profile.yaml")
    to_file = target is not None and str(target) != "-"
    before = earlier(target) if target and to_file else None
    names = [name.strip() for name in only.split(",") if name.strip()]
    request = probing.ProbeRequest(
        device=device, budget=cast(Any, budget), only=names, shapes=matmul_shapes.read(shapes) if shapes else (),
        dataset=_dataset(dataset, batch_size, step_ms),
    )  # fmt: skip
    with shown() as progress:
        profile = probing.probe(
            request, progress=progress, earlier=before, cached=(lambda here: None) if fresh else _latest
        )

    def keeping(now: Profile | None) -> Profile:
        return with_programs(profile, now.programs) if now else profile

    whole = write_over(target, keeping) if target and to_file else profile
    if target and not to_file:
        write(whole, target)
    if as_json:
        show(dump_json(whole), end="")
    given = {
        "--only": only, "--device": device != "auto" and device, "--budget": budget != "standard" and budget,
        "--shapes": shapes, "--dataset": dataset, "--batch-size": batch_size, "--step-ms": step_ms,
        "--fresh": fresh, "-o": output, "--json": as_json,
    }  # fmt: skip
    own_dataset = dataset is not None or any(row.bench == "dataset" for row in profile.measurements)
    try:
        _keep(profile, own=own_dataset, quick=budget == "quick", partial=bool(names))
    finally:
        _print(whole, target if to_file else None, given, apart=device != "all", taken=as_json or not to_file)


def _print(profile: Profile, file: Path | None, given: dict[str, Any], *, apart: bool, taken: bool) -> None:
    """Print the report on stdout, or on stderr where the profile itself was printed on stdout. `apart`: the devices of
    the node were not measured together, so that a part of the benches may run again.
    """
    from gputune.report import next_steps, terminal
    from gputune.report.answer import answer_of

    stream = sys.stderr if taken else sys.stdout
    if stream is None:
        return
    again = next_steps.command(profile, given, completes=file is not None and apart)
    answer = answer_of(profile, str(file) if file else "PROFILE", again)
    terminal.print_profile(profile, stream, answer, written=str(file or ""))


def _dataset(path: str | None, batch_size: int | None, step_ms: float | None) -> tuple[UserDataset, ...]:
    from gputune.bench_process import UserDataset
    from gputune.benches import _user_code

    if path is None:
        for option, value in (("--batch-size", batch_size), ("--step-ms", step_ms)):
            if value is not None:
                raise UsageError(f"{option} {value:g}: says how --dataset is loaded", "add --dataset FILE.py:CALLABLE")
        return ()
    _user_code.check(path, "--dataset")
    return (UserDataset(path=path, batch_size=batch_size, step_ms=step_ms),)


def _latest(fingerprint: Fingerprint) -> Profile | None:
    """The latest profile of this machine; None where TF32 is overridden, under which none is kept."""
    from gputune.facts.environment import TF32_OVERRIDE
    from gputune.host import Host
    from gputune.profile import places

    host = Host()
    return None if TF32_OVERRIDE in host.environ else places.latest(_key(fingerprint, host), host.environ)


def _keep(profile: Profile, *, own: bool, quick: bool, partial: bool) -> None:
    """Save a profile where `gputune apply auto` looks, unless it would not suit other programs: because it is of the
    user's `own` dataset, of the `quick` budget, or `partial`, of benches asked for by name. Says why it is not kept.
    """
    from gputune.facts.environment import TF32_OVERRIDE
    from gputune.host import Host
    from gputune.host.stderr import say
    from gputune.profile import places

    host = Host()
    fingerprint = _key(profile.fingerprint, host)
    before = places.latest(fingerprint, host.environ)
    known, measured = ({row.bench for row in one.measurements} if one else set() for one in (before, profile))
    if partial and not (known and measured >= known):  # with what it kept of others, it has less than the cached one
        return
    reasons = {
        "its DataLoader is one dataset's; name it: gputune apply PROFILE": own,
        f"measured under {TF32_OVERRIDE}; unset {TF32_OVERRIDE}": TF32_OVERRIDE in host.environ,
        "a longer probe may have written the one there; probe in the standard budget": quick and before,
    }
    why = next((reason for reason, holds in reasons.items() if holds), None)
    try:
        if why is None:
            places.keep(profile, fingerprint, host.environ)
    except MeasureError as error:
        why = str(error)
    if why:
        say(f"not kept for gputune apply auto: {why}")


def _key(fingerprint: Fingerprint, host: Host) -> Fingerprint:
    """The fingerprint under which a profile is cached: as it is read without torch, where it is of the same device."""
    from gputune.runtime.local_fingerprint import local_fingerprint

    here = local_fingerprint(host)
    return here if here.device == fingerprint.device else fingerprint
