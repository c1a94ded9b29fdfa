"""`gputune merge`: one profile for several nodes of a kind, so that all ranks of a job apply the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gputune.profile import Profile


def merge(
    profiles: Annotated[list[Path], typer.Argument(metavar="PROFILE...", help="One of each node.", show_default=False)],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where the common profile goes; - is stdout.", show_default=False)
    ],
) -> None:
    """Choose the profile of which most nodes share the settings, and say which nodes' own would differ.

    All must be of the same GPU (or CPU) and torch: exit code 2 otherwise.
    """
    from gputune import profile
    from gputune.cli._output import check_writable, write
    from gputune.runtime.launch import say

    if str(output) != "-":
        check_writable(output)
    found = [profile.load(path) for path in profiles]
    _check_alike(profiles, found)
    chosen = profile.common(found)
    for path, other in zip(profiles, found, strict=True):
        if names := profile.differing(found[chosen], other):
            say(f"{path}: would have other values of {', '.join(names)}")
    write(found[chosen], output)
    say(f"{profiles[chosen]} stands for all {len(profiles)}")


def _check_alike(paths: list[Path], found: list[Profile]) -> None:
    """Raises UsageError where settings of one would be skipped on another node as measured elsewhere."""
    from gputune.errors import UsageError

    for path, other in zip(paths, found, strict=True):
        odd = found[0].fingerprint.differences(other.fingerprint, ("device", "compute_capability", "torch"))
        if odd:
            raise UsageError(
                f"{path}: was not measured on what {paths[0]} was: {'; '.join(odd)}",
                "merge those of one kind, and start a job on nodes of one kind",
            )
