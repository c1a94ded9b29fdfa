"""The rows of `tuning.applied` and `gputune.status()`: a tuple to code, and where they are printed a short table."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.live.applied import Applied, Reason
from gputune.runtime.rows import Rows

USED = ("used by the script",)
TF32 = Applied(
    setting="matmul_precision", before="ieee", after="tf32", status="applied", source="profile",
    reasons=("in this process",),
)  # fmt: skip
FUSED = Applied(setting="fused_optimizer", after=True, status="applied", source="profile", reasons=USED)
AHEAD = Applied(setting="dataloader_prefetch_factor", after=4, status="applied", reasons=USED)
CHANGED = Applied(
    setting="omp_threads", before=2, after=1, status="changed-later", source="program",
    reasons=("the program later changed it from 3",),
)  # fmt: skip
ROW = st.builds(
    Applied,
    setting=st.text(),
    before=st.none() | st.booleans() | st.integers() | st.text(),
    after=st.none() | st.booleans() | st.text() | st.dictionaries(st.text(), st.integers()),
    reasons=st.lists(st.text(), max_size=2).map(tuple),
)


def skipped(name: str, *reasons: Any) -> Applied:
    return Applied(setting=name, status="skipped", reasons=reasons or (Reason.DEFAULT(),))


def test_to_code_they_are_a_tuple() -> None:
    rows = Rows([TF32, FUSED])
    assert rows == (TF32, FUSED)
    assert (len(rows), rows[1], rows[:1], [*rows], FUSED in rows) == (2, FUSED, (TF32,), [TF32, FUSED], True)
    assert pickle.loads(pickle.dumps(rows)) == copy.deepcopy(rows) == rows


def test_printed_they_are_a_table() -> None:
    rows = Rows([FUSED, TF32, CHANGED, *(skipped(f"setting_{number}") for number in range(12))])
    assert str(rows) == repr(rows)
    assert str(rows).splitlines() == [
        "setting           before  after  status         why",
        "fused_optimizer           on     applied        used by the script",
        "matmul_precision  ieee    tf32   applied        in this process",
        "omp_threads       2       1      changed-later  the program later changed it",
        "                                                from 3",
        "12 more are at torch's default",
    ]


def test_the_longest_name_leaves_room_for_a_reason() -> None:
    assert str(Rows([AHEAD, CHANGED])).splitlines() == [
        "setting                     before  after  status         why",
        "dataloader_prefetch_factor          4      applied        used by the script",
        "omp_threads                 2       1      changed-later  the program later",
        "                                                          changed it from 3",
    ]


def test_what_was_skipped_for_the_same_reason_is_told_together() -> None:
    late, other = (
        "must be set before a process starts: gputune apply PROFILE -- CMD",
        "measured with torch 2.11, but this is torch 2.12",
    )
    rows = Rows([skipped("cudnn_tf32", other), skipped("a", late), skipped("compile", other), skipped("b")])
    assert str(rows).splitlines() == [
        "cudnn_tf32, compile: skipped, measured with torch 2.11, but this is torch 2.12",
        "a: skipped, must be set before a process starts: gputune apply PROFILE -- CMD",
        "1 more is at torch's default",
    ]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "gputune applied no setting in this process"),
        ([skipped("a")], "1 is at torch's default"),
        ([skipped("a"), skipped("b")], "2 are at torch's default"),
    ],
)
def test_where_there_is_nothing_to_tell_it_says_so(rows: list[Applied], text: str) -> None:
    assert str(Rows(rows)) == text


def test_several_values_are_counted() -> None:
    multiples = Applied(setting="dimension_multiple", after={"bfloat16": 8, "tf32": 4}, status="applied", reasons=USED)
    assert "dimension_multiple          2 values  applied" in str(Rows([multiples]))


@pytest.mark.slow
@given(st.lists(ROW, max_size=5))
def test_whatever_they_hold_a_terminal_only_shows_it_in_80_columns(rows: list[Applied]) -> None:
    lines = str(Rows(rows)).split("\n")
    assert all(line.isprintable() and len(line) <= 80 and line == line.rstrip() for line in lines)


def test_a_variable_that_would_steer_the_terminal_is_shown_with_escapes() -> None:
    exported = "already exported: OMP_NUM_THREADS=\x1b[2J2"
    row = Applied(
        setting="omp_threads", after="\x1b[2J2", status="kept-user", source="environment", reasons=(exported,)
    )
    assert r"\x1b[2J2" in str(Rows([row]))
    assert "\x1b" not in str(Rows([row]))


def test_no_space_is_left_before_a_word_that_is_longer_than_a_line() -> None:
    assert str(Rows([skipped("a", f"{'b' * 66}; {'c' * 90}")])).splitlines()[0] == f"a: skipped, {'b' * 66};"


def test_the_longest_reason_is_cut_in_the_table_alone() -> None:
    row = Applied(setting="omp_threads", status="failed", reasons=(str("no " * 9999),))
    text = str(Rows([row]))
    assert (len(text.splitlines()), text[-4:]) == (6, " ...")
    assert len(row.why) == 3 * 9999
