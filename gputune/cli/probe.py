"""`gputune probe`: measure this machine and write its profile."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gputune.errors import MeasureError, UsageError

if TYPE_CHECKING:
    from gputune.bench_process import UserDataset
    from gputune.host import Host
    from gputune.profile import Fingerprint, Profile


def probe(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file to write; - is stdout.", show_default="profile.yaml"),
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:N, or all: every GPU of this node at once.")
    ] = "auto",
    budget: Annotated[str, typer.Option(help="quick, standard or thorough.")] = "standard",
    only: Annotated[
        str,
        typer.Option(
            help="Run only these benches, separated by commas. "
            "What the file that it replaces has of the others is kept, if it is of this device."
        ),
    ] = "",
    shapes: Annotated[
        Path | None,
        typer.Option(help="Measure the matmuls of this file too: M N K and, optionally, a dtype in each line."),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:CALLABLE",
            help="Measure this dataset or DataLoader too: path.py:callable or package.module:callable returns it.",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(help="The batch size of a --dataset without its own.", min=1, max=1 << 24, show_default="32"),
    ] = None,
    step_ms: Annotated[
        float | None,
        typer.Option(
            help="How long a training step works on each batch of --dataset, in ms.",
            min=0.001,
            max=3.6e6,
            show_default="none: batches are taken as fast as they come",
        ),
    ] = None,
    each: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With --device all: also write each GPU's own profile there, as cuda0.yaml ..."
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew, without what the latest probe of this machine chose.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON on stdout.")] = False,
) -> None:
    """Measure this machine and write its profile.

    What the latest probe of this machine chose stands unless this one certainly contradicts it. The programs of a
    profile that it replaces are kept.
    """
    from gputune import probing
    from gputune.benches import matmul_shapes
    from gputune.cli._output import check_writable, write
    from gputune.profile import dump_json, keeping, readable
    from gputune.report import terminal
    from gputune.report.progress import shown

    target = output if output or as_json else Path("profile.yaml")
    if target and str(target) != "-":
        check_writable(target)
    _check_each(each, device)
    own: dict[str, Profile] = {}
    names = [name.strip() for name in only.split(",") if name.strip()]
    wanted: Any = budget
    request = probing.Request(
        device=device,
        budget=wanted,
        only=names,
        shapes=matmul_shapes.read(shapes) if shapes else (),
        dataset=_dataset(dataset, batch_size, step_ms),
    )
    with shown() as progress:
        profile = probing.probe(
            request,
            progress=progress,
            each=own.__setitem__,
            earlier=readable(target),
            cached=(lambda here: None) if fresh else _cached,
        )
    whole = keeping(profile, target) if target else profile
    if target:
        write(whole, target)
    if as_json:
        print(dump_json(whole), end="", flush=True)
    if sys.stderr is not None:
        terminal.print_profile(whole, sys.stderr)
        if target and str(target) != "-":
            print(f"\nWritten to {target}. Use it:\n    gputune apply {target} -- python train.py", file=sys.stderr)
        _say_what_waits(profile, device, target)
    _keep(profile, own=_has_own_dataset(profile) or dataset is not None, quick=budget == "quick", partial=bool(names))
    _save_each(own, each)


def _cached(fingerprint: Fingerprint) -> Profile | None:
    """The latest profile of this machine; None where TF32 is overridden, under which none is kept."""
    from gputune.facts.environment import TF32_OVERRIDE
    from gputune.host import Host
    from gputune.profile import places

    host = Host()
    return None if TF32_OVERRIDE in host.environ else places.latest(_key(fingerprint, host), host.environ)


def _key(fingerprint: Fingerprint, host: Host) -> Fingerprint:
    """The fingerprint under which a profile is cached: as it is read without torch, where it is of the same device."""
    from gputune.runtime.local_fingerprint import local_fingerprint

    here = local_fingerprint(host)
    return here if here.device == fingerprint.device else fingerprint


def _say_what_waits(profile: Profile, device: str, target: Path | None) -> None:
    """The one command that measures again what the provisional choices rest on."""
    from gputune.recommend import provisional

    waiting = provisional(profile.settings, profile.families)
    if not waiting:
        return
    benches = ",".join(dict.fromkeys(bench for names in waiting.values() for bench in names))
    options = f" --device {device}" if device != "auto" else ""
    options += f" -o {shlex.quote(str(target))}" if target and str(target) not in ("-", "profile.yaml") else ""
    print(
        f"\nProvisional: {', '.join(waiting)}. Once this machine is idle:\n    gputune probe --only {benches}{options}",
        file=sys.stderr,
    )


def _has_own_dataset(profile: Profile) -> bool:
    return any(row.bench == "dataset" for row in profile.measurements)


def _covers(profile: Profile, cached: Profile | None) -> bool:
    """Whether a profile of some benches has, with what it kept of others, all that the cached one has."""
    known, measured = ({row.bench for row in one.measurements} if one else set() for one in (cached, profile))
    return bool(known) and measured >= known


def _check_each(folder: Path | None, device: str) -> None:
    from gputune.cli._output import check_folder

    if folder is None:
        return
    if device != "all":
        raise UsageError(f"--each {folder}: requires all GPUs of a node", "add --device all")
    check_folder("--each", folder)


def _save_each(own: dict[str, Profile], folder: Path | None) -> None:
    """Write the profile of cuda:0 as cuda0.yaml, and so on."""
    from gputune.profile import keeping, save

    for device, profile in own.items() if folder else ():
        path = Path(folder or "", f"{device.replace(':', '')}.yaml")
        save(keeping(profile, path), path)


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


def _keep(profile: Profile, own: bool, quick: bool, partial: bool) -> None:
    """Also save it where `gputune apply auto` looks, unless it would not suit other programs."""
    from gputune.facts.environment import TF32_OVERRIDE
    from gputune.host import Host
    from gputune.host.stderr import say
    from gputune.profile import places

    host = Host()
    fingerprint = _key(profile.fingerprint, host)
    path = places.cached(fingerprint, host.environ)
    if partial and not _covers(profile, places.latest(fingerprint, host.environ)):
        return
    reasons = {
        "its DataLoader is one dataset's; name it: gputune apply PROFILE": own,
        f"measured under {TF32_OVERRIDE}; unset {TF32_OVERRIDE}": TF32_OVERRIDE in host.environ,
        "a longer probe may have written the one there; probe in the standard budget": quick and path,
    }
    why = next((reason for reason, holds in reasons.items() if holds), None)
    try:
        if why is None:
            places.keep(profile, fingerprint, host.environ)
    except MeasureError as error:
        why = str(error)
    if why:
        say(f"not kept for gputune apply auto: {why}")
