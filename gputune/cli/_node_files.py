"""The files that `gputune check` writes for other programs. Their folders are tested before any check runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gputune.errors import MeasureError

if TYPE_CHECKING:
    from gputune.checks import Finding
    from gputune.facts import Facts

FILES = {"--nfd": "gputune.features", "--prometheus": "gputune.prom"}
"""The file that each option writes into its folder."""


def targets(folders: Mapping[str, Path | None]) -> dict[str, Path]:
    """The file to write for each option that was given. Raises UsageError where a folder cannot be written to."""
    from gputune.cli._output import check_folder

    given = {option: folder for option, folder in folders.items() if folder is not None}
    for option, folder in given.items():
        check_folder(option, folder)
    return {option: folder / FILES[option] for option, folder in given.items()}


def write(files: Mapping[str, Path], facts: Facts, findings: Sequence[Finding]) -> MeasureError | None:
    """Write every file and return the first fault, which must cost neither the other file nor the answer on stdout."""
    from gputune.host import atomic
    from gputune.report import nfd, prometheus

    faults = []
    for option, path in files.items():
        report = {"--nfd": nfd, "--prometheus": prometheus}[option]
        try:
            atomic.write(path, report.text(facts, findings))
        except OSError as error:
            message = f"{option}: {path}: not written: {error.strerror}"
            faults.append(MeasureError(message, "free some space there, or name another folder"))
    return faults[0] if faults else None
