"""The dataclasses as JSON, as they are: field names, numbers in the units of their names, nothing rounded."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gputune.checks import Finding
from gputune.facts import Facts
from gputune.host.shared_text import TEXTS, cleaner
from gputune.runtime.status import Status


def check(facts: Facts, findings: Sequence[Finding]) -> str:
    """Facts and findings, without what tells who and where, since the answer is sent on and kept."""
    clean = cleaner()
    rows = [asdict(finding) for finding in findings]
    return text({"facts": clean.all(asdict(facts)), "findings": clean.all(rows, TEXTS)})


def status(found: Status) -> str:
    return text(asdict(found) | {"settings": [row.plain for row in found.settings]})


def text(data: Any) -> str:
    return _escaped(json.dumps(data, indent=2, allow_nan=False))


def line(data: Any) -> str:
    return _escaped(json.dumps(data, allow_nan=False))


def _escaped(text: str) -> str:
    """The one control character that json.dumps writes as it is."""
    return text.replace("\x7f", "\\u007f")
