"""Findings that say the same about several GPUs, or of several checks, as one."""

import re
from collections.abc import Sequence

from gputune.checks import Finding
from gputune.facts import cpu_list

_NVIDIA_SMI = re.compile(r"(?:(?<=nvidia-smi -i )|(?<=nvidia-smi mig -i ))[^\s;]+")  # the GPU in a remedy's command


def merged(findings: Sequence[Finding]) -> list[tuple[str, str, str | None]]:
    """Names, message and remedy of equal findings: of one check about several GPUs, then of several checks."""
    of_gpus: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        of_gpus.setdefault((one.check, one.message, _NVIDIA_SMI.sub("", one.remedy or "")), []).append(one)
    of_checks: dict[tuple[str, str | None], list[str]] = {}
    for (check, message, _), same in of_gpus.items():
        said = (f"{_gpus([one.subject or '' for one in same])}{message}", _remedy([one.remedy or "" for one in same]))
        of_checks.setdefault(said, []).append(check)
    return [
        (checks[0], message, remedy)
        if len(checks) == 1
        else (f"{len(checks)} checks", f"{message} ({', '.join(checks)})", remedy)
        for (message, remedy), checks in of_checks.items()
    ]


def _remedy(remedies: Sequence[str]) -> str | None:
    """One remedy for several GPUs, of which nvidia-smi takes a list."""
    gpus = list(dict.fromkeys(found for remedy in remedies for found in _NVIDIA_SMI.findall(remedy)))
    return _NVIDIA_SMI.sub(",".join(gpus), remedies[0]) or None


def _gpus(subjects: Sequence[str]) -> str:
    """The prefix `GPU 0-3,7: ` for the GPUs among the subjects; messages name other subjects themselves."""
    numbers = [int(subject.removeprefix("GPU ")) for subject in subjects if re.fullmatch(r"GPU \d{1,4}", subject)]
    return f"GPU {cpu_list.text(numbers)}: " if numbers else ""
