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

    All must be of the same GPU (or CPU) and torch: exit code 2 otherwise. What a node will skip all the same is said.
    """
    from gputune import profile
    from gputune.cli._output import check_writable, write
    from gputune.host.stderr import say

    if str(output) != "-":
        check_writable(output)
    found = [profile.load(path) for path in profiles]
    _check_alike(profiles, found)
    chosen = profile.representative_index(found)
    for path, other in zip(profiles, found, strict=True):
        if names := profile.differing_settings(found[chosen], other):
            say(f"{path}: would have other values of {', '.join(names)}")
        if names := _skipped(found[chosen], other):
            say(
                f"{path}: was measured on another CPU, or more or fewer of them; that node will skip {', '.join(names)}"
            )
    write(found[chosen], output)
    say(f"{profiles[chosen]} stands for all {len(profiles)}")


def _skipped(chosen: Profile, other: Profile) -> list[str]:
    """The settings that the other node, as it was when it was measured, takes for measured elsewhere."""
    from gputune.settings import all_settings

    return [
        name
        for name, setting in all_settings().items()
        if chosen.fingerprint.differences(other.fingerprint, setting.DEPENDS)
    ]


def _check_alike(paths: list[Path], found: list[Profile]) -> None:
    """Raises UsageError where one profile cannot hold: what computes, or torch, is another."""
    from gputune.errors import UsageError

    for path, other in zip(paths, found, strict=True):
        odd = found[0].fingerprint.differences(other.fingerprint, ("device", "compute_capability", "torch"))
        if odd:
            raise UsageError(
                f"{path}: was not measured on what {paths[0]} was: {'; '.join(odd)}",
                "merge those of one kind, and start a job on nodes of one kind",
            )
