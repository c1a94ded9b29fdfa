"""The dataclasses as JSON, as they are: field names, numbers in the units of their names, nothing rounded."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gputune.checks import Finding
from gputune.facts import Facts
from gputune.runtime.status import Status


def check(facts: Facts, findings: Sequence[Finding]) -> str:
    return text({"facts": asdict(facts), "findings": [asdict(finding) for finding in findings]})


def status(found: Status) -> str:
    return text(asdict(found) | {"settings": [row.plain for row in found.settings]})


def text(data: Any) -> str:
    return json.dumps(data, indent=2, allow_nan=False)
