"""The dataclasses as JSON, as they are: field names, numbers in the units of their names, nothing rounded."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gputune.checks import Finding
from gputune.facts import Facts
from gputune.host.shared_text import TEXTS, cleaner
from gputune.profile import now
from gputune.report.json_answers import SCHEMA
from gputune.report.severities import Summary
from gputune.runtime.status import Status
from gputune.version import __version__


def check(facts: Facts, findings: Sequence[Finding], summary: Summary) -> str:
    """A `CheckAnswer`, without what tells who and where, since it is sent on and kept."""
    clean = cleaner()
    rows = [asdict(finding) for finding in findings]
    read = {"facts": clean.all(asdict(facts)), "findings": clean.all(rows, TEXTS)}
    return text({**_head(), "summary": asdict(summary), **read})


def status(found: Status) -> str:
    """A `StatusAnswer`."""
    return text({**_head(), **asdict(found), "settings": [row.plain for row in found.settings]})


def _head() -> dict[str, Any]:
    return {"schema": SCHEMA, "gputune": __version__, "created": now()}


def text(data: Any) -> str:
    return _escaped(json.dumps(data, indent=2, allow_nan=False))


def line(data: Any) -> str:
    return _escaped(json.dumps(data, allow_nan=False))


def _escaped(text: str) -> str:
    """The one control character that json.dumps writes as it is."""
    return text.replace("\x7f", "\\u007f")
