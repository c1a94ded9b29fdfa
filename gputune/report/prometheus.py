"""What a check found as metrics, in a file for the textfile collector of Prometheus's node_exporter.

The collector reads every file *.prom of its folder; one with a timestamp in it, or with the same series twice, is
refused as a whole. How old the file is it tells itself, as node_textfile_mtime_seconds.

Source: Prometheus, Exposition formats; node_exporter, collector/textfile.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gputune.checks import Finding, Severity
from gputune.facts import Facts
from gputune.report.nfd import worst
from gputune.version import __version__

STATUS: dict[Severity, int] = {"OK": 0, "WARNING": 1, "ERROR": 2, "UNKNOWN": 3}
"""As monitoring plugins have their exit codes. What is not applicable has no series, and neither has what was not
asked."""


def text(facts: Facts, findings: Sequence[Finding]) -> str:
    """The file: of the checks that were asked, and no others.

    Of several findings of a check about one subject the worst counts.
    """
    found = worst((series("gputune_check_status", check=one.check, subject=one.subject or ""), one.severity)
                  for one in findings)  # fmt: skip
    statuses = {name: STATUS[severity] for name, severity in found.items() if severity in STATUS}
    about = "What a check found: 0 ok, 1 warning, 2 error, 3 unknown. No series where it is not applicable or was not asked."
    families = (
        _family("gputune_check_status", about, statuses),
        _family(
            "gputune_gpus", "GPUs that NVML lists, or torch where there is no NVML.", {"gputune_gpus": len(facts.gpus)}
        ),
        _family("gputune_info", "What was looked at, and by which gputune.", {_info(facts): 1}),
    )
    return "".join(f"{line}\n" for family in families for line in family)


def _family(name: str, about: str, values: Mapping[str, int]) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} gauge"
    yield from (f"{one} {number}" for one, number in values.items())


def _info(facts: Facts) -> str:
    return series(
        "gputune_info",
        version=__version__,
        torch=facts.libraries.torch or "",
        cuda=facts.libraries.cuda or "",
        driver=facts.driver.version or "",
        gpu=", ".join(dict.fromkeys(gpu.name for gpu in facts.gpus)),
    )


def series(metric: str, **labels: str) -> str:
    """A metric with its labels, as the text format writes them."""
    pairs = ",".join(f'{name}="{_escaped(said)}"' for name, said in labels.items())
    return f"{metric}{{{pairs}}}"


def _escaped(said: str) -> str:
    """Bytes that were no UTF-8 stand in Python's text as surrogates, which no file can hold: they are written as their numbers."""
    said = said.encode(errors="backslashreplace").decode()
    return said.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
