"""`gputune bug-report`: what a maintainer needs to know of this machine, without who and where."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputune.cli import _choices
from gputune.errors import MeasureError

if TYPE_CHECKING:
    from gputune.facts import Facts
    from gputune.host import Host
    from gputune.host.shared_text import Cleaner
    from gputune.report.bug_report import Section

EPILOG = _choices.epilog("""
  gputune bug-report             # Read it
  gputune bug-report report.txt  # Read it, and write it to a file
""", faults=_choices.UNWRITTEN)  # fmt: skip


def bug_report(
    file: Annotated[
        Path | None,
        typer.Argument(
            parser=_choices.path, metavar="FILE", help="Also write it to this file.", show_default="stdout only"
        ),
    ] = None,
) -> None:
    """Show what a maintainer needs to know.

    Versions, findings, settings in force, the cached profile and the last errors are in it.

    Without FILE it is only shown, on stdout; with FILE it is shown first and then written there, for you alone to read.
    Nothing is sent anywhere. Logins in URLs, names of users and hosts, and job ids are left out or replaced, and the
    report says how many.
    """
    from gputune.cli import _output
    from gputune.host.shared_text import cleaner
    from gputune.host.stderr import say, show
    from gputune.report import bug_report as report
    from gputune.report.progress import waiting

    if file:
        _output.check_writable(file, "FILE", _output.REPORT)
    clean = cleaner()
    with waiting("reading this machine, and importing torch in other processes ..."):
        facts, sections = _sections(clean)
    shown = report.text(sections, clean, len(set(os.environ) - set(facts.environment)))
    show(shown)
    if file:
        _write(file, shown)
        say(f"written to {file}, {len(shown.encode()) >> 10} KiB, as shown above")


def _write(file: Path, text: str) -> None:
    """Write it whole or not at all, for this user alone to read. Raises MeasureError."""
    from gputune.host import atomic

    target = Path(os.path.realpath(file))
    os.umask(0o077)
    try:
        if target.exists():
            target.chmod(0o600)  # the new file takes this mode over
        atomic.write(target, f"{text}\n")
    except OSError as error:
        raise MeasureError(f"{file}: not written: {error.strerror}", "make room there, or name another file") from None


def _sections(clean: Cleaner) -> tuple[Facts, list[Section]]:
    from gputune import checks
    from gputune import facts as all_facts
    from gputune.host import Host
    from gputune.report import bug_report as report

    host = Host()
    facts = all_facts.read(host, variables=checks.variables())
    findings = checks.run(facts)
    return facts, [
        report.section("Versions", lambda: _versions(facts)),
        report.section("Installed", lambda: _installed(facts)),
        report.section("Findings", lambda: report.findings(findings)),
        report.section("Not known", lambda: report.gaps(facts.gaps)),
        report.section("Settings in force", lambda: _in_force(facts, host)),
        report.section("Cached profile", lambda: _cached(host)),
        report.section("Last errors", _errors),
        report.section("Environment", lambda: [f"{name}={value}" for name, value in facts.environment.items()]),
        report.section("Facts", lambda: _facts(facts, clean), longest=report.MOST_BYTES),
    ]


def _versions(facts: Facts) -> Iterator[str]:
    import platform

    from gputune.version import __version__

    libraries = facts.libraries
    yield f"gputune {__version__}, Python {platform.python_version()} ({sys.platform}, {platform.machine()})"
    versions = {
        "torch": libraries.torch, "CUDA": libraries.cuda, "cuBLAS": libraries.cublas, "cuDNN": libraries.cudnn,
        "NCCL": libraries.nccl, "NVIDIA driver": facts.driver.version, "Python of torch": libraries.python,
    }  # fmt: skip
    yield ", ".join(f"{name} {version or 'none'}" for name, version in versions.items())
    yield f"GPUs: {', '.join(gpu.name or 'unknown' for gpu in facts.gpus) or 'none'}; CPU: {facts.cpu.model}"
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        system = "unknown"
    yield f"{system}, kernel {platform.release()}, C library {' '.join(platform.libc_ver())}"
    yield f"container {facts.container.kind or 'none'}, scheduler {facts.scheduler.name or 'none'}"


def _installed(facts: Facts) -> Iterator[str]:
    from importlib import metadata

    yield f"gputune in {Path(__file__).parents[1]}, run by {sys.executable}"
    yield f"torch in {facts.libraries.torch_folder}"
    yield "in a virtual environment" if sys.prefix != sys.base_prefix else "not in a virtual environment"
    try:
        installed = metadata.distribution("gputune")
    except metadata.PackageNotFoundError:
        yield "it was not installed by a package manager"
        return
    for name in ("INSTALLER", "direct_url.json"):
        yield f"{name}: {(installed.read_text(name) or 'none').strip()}"
    for name in ("torch", "nvidia-ml-py", "psutil", "typer", "rich", "PyYAML"):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name} is not installed"


def _in_force(facts: Facts, host: Host) -> list[str]:
    """The settings of a Python started here. A torch that did not answer is not asked for another two minutes."""
    from gputune.report import bug_report as report
    from gputune.runtime.status import ask

    if facts.libraries.torch is None:
        return ["not asked, since torch gave no answer (see above)"]
    return report.status(ask(host))


def _cached(host: Host) -> Iterator[str]:
    from gputune.profile import places
    from gputune.report import bug_report as report
    from gputune.runtime.local_fingerprint import local_fingerprint

    skipped: list[str] = []
    found = places.found(local_fingerprint(host), host.environ, skipped.append)
    yield from skipped
    if found:
        yield f"{found[0]}"
        yield from report.profile(found[1])


def _errors() -> Iterator[str]:
    from gputune.cli import _faults

    for one in _faults.latest():
        yield f"{one['when']} gputune {one['gputune']} {one['verb']}"
        yield from (f"  {line}" for line in one["error"].splitlines())


def _facts(facts: Facts, clean: Cleaner) -> list[str]:
    import json
    from dataclasses import asdict

    return json.dumps(clean.all({**asdict(facts), "environment": "above", "gaps": "above"}), indent=1).splitlines()
