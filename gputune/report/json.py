"""The dataclasses as JSON, as they are: field names, numbers in the units of their names, nothing rounded.

What `gputune check --json` and `gputune status --json` print has types, and JSON Schemas that follow from them.

Within one number of `schema` keys are only added and lists of words only get longer: no key goes away, becomes null
where it was not, or changes its type or unit. So these schemas allow further keys at every level, as a reader should.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gputune.checks import Finding
from gputune.facts import Facts
from gputune.host.shared_text import TEXTS, cleaner
from gputune.live.applied import OTHER, Reason
from gputune.profile import now
from gputune.profile.schema import DIALECT
from gputune.report.severities import WORST_FIRST, Summary
from gputune.runtime.status import ProgramStatus, Row, Status, Verified
from gputune.strict_types import written
from gputune.version import __version__

SCHEMA = 1
"""The version of both formats."""
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    schema: int
    """The version of this format."""
    gputune: str
    """The version of gputune that answered."""
    created: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer(_Answer):
    """What `gputune check --json` prints. Units are part of the names (`shm_bytes`); null is what is not known or does
    not exist, and `facts.gaps` says why a fact could not be read.
    """

    summary: Summary
    facts: Facts
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer(_Answer):
    """What `gputune status --json` prints: the settings of a Python that was started in this environment."""

    torch: str
    python: str
    """The path of the interpreter."""
    gpu: str | None
    """The name of the GPU that torch uses; null where it sees none."""
    settings: tuple[Row, ...]
    verified: tuple[Verified, ...]
    """What computations showed; empty without `--verify`."""
    override: str | None
    """The value of NVIDIA_TF32_OVERRIDE, which overrules the flags; null where it is unset."""
    digest: str | None
    """Identifies what was applied here, to be compared across ranks; null where nothing was applied."""
    programs: tuple[ProgramStatus, ...]
    """The tuned programs of the profile that is applied here."""


def check_schema() -> dict[str, Any]:
    schema = _schema(CheckAnswer)
    schema["$defs"]["Summary"]["properties"]["severities"] |= {"required": list(WORST_FIRST)}
    return schema


def status_schema() -> dict[str, Any]:
    schema = _schema(StatusAnswer)
    schema["$defs"]["Why"]["properties"]["reason"] |= {"enum": [*(reason.name.lower() for reason in Reason), OTHER]}
    return schema


def _schema(kind: type[_Answer]) -> dict[str, Any]:
    described = written(kind)
    described["properties"]["schema"] |= {"const": SCHEMA}
    described["properties"]["created"] |= {"format": "date-time", "pattern": _TIME}
    return {"$schema": DIALECT, **described}


def check(facts: Facts, findings: Sequence[Finding], summary: Summary) -> str:
    """A `CheckAnswer`, without what tells who and where, since it is sent on and kept."""
    clean = cleaner()
    read = {"facts": clean.all(asdict(facts)), "findings": clean.all([asdict(one) for one in findings], TEXTS)}
    return text({**_head(), "summary": asdict(summary), **read})


def status(found: Status) -> str:
    return text({**_head(), **asdict(found), "settings": [row.plain for row in found.settings]})


def _head() -> dict[str, Any]:
    return {"schema": SCHEMA, "gputune": __version__, "created": now()}


def text(data: Any) -> str:
    # The one control character that json.dumps writes as it is.
    return json.dumps(data, indent=2, allow_nan=False).replace("\x7f", "\\u007f")
