"""The result of a check as metrics, in a file for the textfile collector of Prometheus's node_exporter.

The collector reads every file *.prom in its folder. It rejects a file that has a timestamp, or the same series twice.
The file's age is a metric of the collector's own, node_textfile_mtime_seconds.

Source: Prometheus, Exposition formats; node_exporter, collector/textfile.go.
"""

from collections.abc import Iterator, Mapping, Sequence

from gputune.checks import Finding, Severity
from gputune.facts import Facts
from gputune.report.severities import worst
from gputune.resources.printable import printable
from gputune.version import __version__

STATUS: dict[Severity, int] = {"OK": 0, "WARNING": 1, "ERROR": 2, "UNKNOWN": 3}
"""The values, equal to the exit codes of monitoring plugins. A check that is not applicable has no series."""


def text(facts: Facts, findings: Sequence[Finding]) -> str:
    """The file's content. A check's findings about the same subject count as the worst of them."""
    found = worst((series("gputune_check_status", check=one.check, subject=one.subject or ""), one.severity)
                  for one in findings)  # fmt: skip
    statuses = {name: STATUS[severity] for name, severity in found.items() if severity in STATUS}
    about = "0 ok, 1 warning, 2 error, 3 unknown. A check that is not applicable or was not asked has no series."
    libraries = facts.libraries
    info = series(
        "gputune_info", version=__version__, torch=libraries.torch or "", cuda=libraries.cuda or "",
        driver=facts.driver.version or "", gpu=", ".join(dict.fromkeys(gpu.name for gpu in facts.gpus)),
    )  # fmt: skip
    families = (
        _family("gputune_check_status", about, statuses),
        _family("gputune_gpus", "GPUs that NVML or, without it, torch lists.", {"gputune_gpus": len(facts.gpus)}),
        _family("gputune_info", "Versions of gputune, torch, CUDA and driver, and the GPUs.", {info: 1}),
    )
    return "".join(f"{line}\n" for family in families for line in family)


def _family(name: str, about: str, values: Mapping[str, int]) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} gauge"
    yield from (f"{one} {number}" for one, number in values.items())


def series(metric: str, **labels: str) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{metric}{{{pairs}}}"


def _escaped(text: str) -> str:
    """The text escaped for a label, and what cannot be seen, or no file can hold, before that as in a terminal."""
    text = printable(text, keep="\n")
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
