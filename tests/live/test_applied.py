"""What became of a setting, as data: every reason has a sentence, and a row passes through JSON whole."""

import json
import string
from typing import Any

import pytest

from gputune.live.applied import Applied, Reason


def places(reason: Reason) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(reason.value) if name is not None]


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_a_reason_names_its_arguments_in_its_sentence(reason: Reason) -> None:
    arguments = [f"argument {number}" for number in range(len(places(reason)))]
    assert all(argument in str(reason(*arguments)) for argument in arguments)
    assert "{" not in str(reason(*arguments))


def test_an_argument_is_never_taken_for_a_place() -> None:
    assert str(Reason.PUT_IN("{0} {all}")) == "put into {0} {all}"


def test_a_row_passes_through_json_whole() -> None:
    reasons = (
        "16 workers were measured with 16 CPUs, and this process has 4",
        "a batch takes 6.1 MiB, and this process's share of /dev/shm is 64 MiB",
    )
    row = Applied(setting="dataloader_workers", before=0, after=4, status="applied", source="profile", reasons=reasons)
    told = json.loads(json.dumps(row.plain))
    assert Applied.from_plain(told) == row
    assert (
        told["why"] == row.why == "16 workers were measured with 16 CPUs, and this process has 4; "
        "a batch takes 6.1 MiB, and this process's share of /dev/shm is 64 MiB"
    )


def test_a_reason_of_another_version_keeps_its_words() -> None:
    row = {**Applied(setting="compile", status="skipped", reasons=(Reason.DEFAULT(),)).plain, "why": "after a trial"}
    row["reasons"] = [{"reason": "after_trial", "arguments": []}]
    assert Applied.from_plain(row).why == "after a trial"


def test_the_reasons_are_asked_by_kind() -> None:
    row = Applied(setting="compile", status="skipped", reasons=(Reason.ELSEWHERE("torch (2.11 there, 2.12 here)"),))
    assert row.because(Reason.DEFAULT, Reason.ELSEWHERE) == ("torch (2.11 there, 2.12 here)",)
    assert row.because(Reason.DEFAULT) is None


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (
            {"before": "ieee", "after": "tf32", "status": "applied", "source": "profile",
             "reasons": ("in this process",)},
            "it tf32 (was ieee): applied (profile), in this process",
        ),
        (
            {"before": True, "after": True, "status": "applied", "source": "torch",
             "reasons": ("already had this value",)},
            "it on: applied (torch), already had this value",
        ),
        (
            {"status": "skipped", "reasons": (Reason.DEFAULT(), "\x1b[2J\n")},
            "it: skipped, torch's default; \\x1b[2J\\n",
        ),
    ],
)  # fmt: skip
def test_a_printed_row_is_one_line(row: dict[str, Any], line: str) -> None:
    assert str(Applied(setting="it", **row)) == line
