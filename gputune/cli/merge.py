"""`gputune merge`: one profile for several nodes of a kind, so that all ranks of a job apply the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputune.cli import _choices
from gputune.errors import UsageError

if TYPE_CHECKING:
    from gputune.profile import Profile

EPILOG = """\b
Examples:
  # One profile for all ranks of a job
  gputune merge node0.yaml node1.yaml -o job.yaml
  # Look at it first
  gputune merge node*.yaml -o -

Exit codes: 0 success; 2 wrong usage, or a file that cannot be read; 3 nothing could be measured, or
the result could not be written; others: gputune --help.
"""


def merge(
    profiles: Annotated[
        list[Path], typer.Argument(parser=_choices.path, metavar="PROFILE", help="One per node.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            parser=_choices.path,
            metavar="FILE",
            help="Where to write the common profile; - is stdout.",
            show_default=False,
        ),
    ],
) -> None:
    """Make one profile for nodes of a kind.

    It is the one whose settings most nodes share, with the programs of all; nodes whose own profile differs are named.

    All must have the same GPU (or CPU) and torch: exit code 2 otherwise. Settings that a node will skip are named.
    """
    from gputune import profile
    from gputune.cli._output import check_writable, write
    from gputune.host.stderr import say

    if str(output) != "-":
        check_writable(output)
    loaded = [profile.load(path) for path in profiles]
    _require_same_kind(profiles, loaded)
    chosen = profile.representative_index(loaded)
    for path, other in zip(profiles, loaded, strict=True):
        if names := profile.differing_settings(loaded[chosen], other):
            say(f"{path}: recommends other values of {', '.join(names)}")
        if names := _skipped(loaded[chosen], other):
            say(f"{path}: measured on another CPU or number of CPUs; that node will skip {', '.join(names)}")
    write(profile.with_programs(loaded[chosen], (one for other in loaded for one in other.programs)), output)
    say(f"took {profiles[chosen]} as the profile of all {len(profiles)} nodes")


def _skipped(chosen: Profile, other: Profile) -> list[str]:
    from gputune.knobs import all_knobs

    return [
        name
        for name, setting in all_knobs().items()
        if chosen.fingerprint.differences(other.fingerprint, setting.DEPENDS)
    ]


def _require_same_kind(paths: list[Path], loaded: list[Profile]) -> None:
    """Raises UsageError where no profile can hold for all: the device or torch differs."""
    for path, other in zip(paths, loaded, strict=True):
        odd = loaded[0].fingerprint.differences(other.fingerprint, ("device", "compute_capability", "torch"))
        if odd:
            raise UsageError(
                f"{path}: was not measured on the same device and torch as {paths[0]}: {'; '.join(odd)}",
                "merge profiles of one kind of node, and start a job on nodes of one kind",
            )
