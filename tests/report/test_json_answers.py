"""The JSON of `check` and `status` fits its own JSON Schema, and what is no such JSON does not."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import facts_of

from gputune import checks
from gputune.checks import Finding
from gputune.facts import Facts
from gputune.live.applied import Applied, Reason, Why
from gputune.report import json as out
from gputune.report.json import check_schema, status_schema
from gputune.report.severities import FAIL_ON, summary
from gputune.runtime.status import Status, Verified

pytestmark = pytest.mark.cluster
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))  # as readers of facts let in
FACTS = st.from_type(Facts)
FINDING = st.builds(Finding, check=st.sampled_from(checks.names()), remedy=st.text(min_size=1))
ROW = st.builds(
    Applied, reasons=st.lists(st.sampled_from([*Reason, None]), max_size=2).map(lambda all_: tuple(map(why, all_)))
)
STATUS = st.builds(Status, settings=st.lists(ROW, max_size=3).map(tuple), verified=st.just(()))


def why(reason: Reason | None) -> Why | str:
    return reason(1, 2, 3, 4) if reason else "a sentence"


@cache
def faults(make: Callable[[], dict[str, Any]]) -> Callable[[Any], list[str]]:
    """The faults that a stock validator finds, as `place: what is wrong`."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(make())
    validator = Draft202012Validator(make(), format_checker=Draft202012Validator.FORMAT_CHECKER)
    return lambda data: [f"{one.json_path}: {one.message}" for one in validator.iter_errors(data)]


def checked(facts: Facts, findings: Any, fail_on: Any = "error") -> Any:
    return json.loads(out.check(facts, findings, summary(findings, fail_on)))


@pytest.mark.parametrize("folder", ["cpu-only", "nvidia-h200-x1", "nvidia-h200-x8"])
@pytest.mark.parametrize("fail_on", FAIL_ON)
def test_recorded_machines_fit(folder: str, fail_on: str) -> None:
    facts = facts_of(folder)
    assert faults(check_schema)(checked(facts, checks.run(facts), fail_on)) == []


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(FACTS, st.lists(FINDING, max_size=5))
def test_any_facts_and_findings_fit(facts: Facts, findings: list[Finding]) -> None:
    assert faults(check_schema)(checked(facts, findings)) == []


@settings(max_examples=100)
@given(STATUS)
def test_any_status_fits(found: Status) -> None:
    assert faults(status_schema)(json.loads(out.status(found))) == []


def test_a_status_that_was_verified_fits() -> None:
    seen = Verified(operation="conv", setting="cudnn_tf32", value=True, relative_error=4.3e-7, took_effect=None)
    found = Status(torch="2.11.0", python="python", gpu="NVIDIA H200", settings=(), verified=(seen,), digest="ab")
    assert faults(status_schema)(json.loads(out.status(found))) == []


@cache
def answer() -> Any:
    facts = facts_of("nvidia-h200-x1", files={"/proc/self/limits": None})
    return checked(facts, checks.run(facts))


GONE = object()


def changed(place: tuple[str | int, ...], to: Any = GONE) -> Any:
    whole = deepcopy(answer())
    *above, last = place
    holder = whole
    for key in above:
        holder = holder[key]
    holder[last] = to
    if to is GONE:
        del holder[last]
    return whole


@pytest.mark.parametrize(
    ("place", "to", "fault"),
    [
        (("facts",), GONE, "$: 'facts' is a required property"),
        (("created",), GONE, "$: 'created' is a required property"),
        (("facts", "memory", "shm_bytes"), GONE, "$.facts.memory: 'shm_bytes' is a required property"),
        (("findings", 0, "remedy"), GONE, "$.findings[0]: 'remedy' is a required property"),
        (("summary", "severities", "OK"), GONE, "$.summary.severities: 'OK' is a required property"),
        (("schema",), 2, "$.schema: 1 was expected"),
        (("created",), "yesterday", "$.created: 'yesterday' does not match"),
        (("summary", "worst"), "error", "$.summary.worst: 'error' is not one of"),
        (("summary", "severities", "FINE"), 1, "$.summary.severities: 'FINE' is not one of"),
        (("findings", 0, "severity"), "FINE", "$.findings[0].severity: 'FINE' is not one of"),
        (("facts", "gaps", 0, "cause"), "fate", "$.facts.gaps[0].cause: 'fate' is not valid under any"),
        (("facts", "memory", "shm_bytes"), "8 GiB", "$.facts.memory.shm_bytes: '8 GiB' is not valid under any"),
        (("facts", "gpus", 0, "name"), None, "$.facts.gpus[0].name: None is not of type 'string'"),
        (("facts", "gpus"), {}, "$.facts.gpus: {} is not of type 'array'"),
    ],
)
def test_what_is_no_check_does_not_fit(place: tuple[str | int, ...], to: Any, fault: str) -> None:
    found = faults(check_schema)(changed(place, to))
    assert any(one.startswith(fault) for one in found)
    assert {one.partition(":")[0] for one in found} == {fault.partition(":")[0]}, "at that place alone"


@pytest.mark.parametrize("place", [("facts",), ("facts", "gpus", 0), ("findings", 0), ("summary",), ()])
def test_a_key_that_a_later_version_adds_fits(place: tuple[str | int, ...]) -> None:
    assert faults(check_schema)(changed((*place, "later"), [])) == []


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("status", "done", "$.settings[0].status: 'done' is not one of"),
        ("source", "nobody", "$.settings[0].source: 'nobody' is not valid under any"),
        ("after", 0.5, "$.settings[0].after: 0.5 is not valid under any"),
        ("why", None, "$.settings[0].why: None is not of type 'string'"),
        ("reasons", [{"reason": "fate", "arguments": []}], "$.settings[0].reasons[0].reason: 'fate' is not one of"),
    ],
)
def test_what_is_no_status_does_not_fit(key: str, value: Any, fault: str) -> None:
    row = Applied(setting="compile", status="skipped", reasons=(Reason.DEFAULT(),))
    data = json.loads(out.status(Status(torch="2.11.0", python="python", gpu=None, settings=(row,))))
    assert faults(status_schema)(data) == []
    data["settings"][0][key] = value
    found = faults(status_schema)(data)
    assert any(one.startswith(fault) for one in found)


def test_units_and_meanings_are_in_it() -> None:
    schema = check_schema()
    power = schema["$defs"]["Health"]["properties"]["power_limit_watts"]
    assert {"type": "null"} in power["anyOf"]
    assert schema["$defs"]["Folder"]["properties"]["free_bytes"]["description"].startswith("The bytes that")
    assert schema["properties"]["created"]["description"] == "UTC, ISO 8601."
