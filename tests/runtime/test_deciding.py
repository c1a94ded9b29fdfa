"""What becomes of a setting: for a command, in a process that imported torch, and for a line in the script."""

from typing import Any

import pytest

from gputune import knobs
from gputune.knobs import LEVELS, Knob, Value
from gputune.live import flags
from gputune.live.applied import Applied, Reason, Why
from gputune.runtime import deciding
from gputune.runtime.deciding import Line, Terms

THREADS, SEGMENTS, MATMUL, CUDNN, AMP, PREFETCH = map(
    knobs.load,
    ("omp_threads", "expandable_segments", "matmul_precision", "cudnn_tf32", "amp_dtype", "dataloader_prefetch_factor"),
)
APPLIED, KEPT, USERS = ("applied", "profile"), ("kept-user", "program"), ("kept-user", "environment")
THREE = "OMP_NUM_THREADS=3"
SHARED = "each rank has at most its share of the CPUs"
SAME = "already exported: OMP_NUM_THREADS=3"
SEVEN = "already exported: OMP_NUM_THREADS=7"


def outcome(row: Applied | None) -> tuple[str, str | None] | None:
    return row and (row.status, row.source)


class TestRefused:
    @pytest.mark.parametrize(
        ("choice", "differences", "environ", "terms", "why"),
        [
            ((THREADS, 3), [], {}, Terms(), None),
            ((MATMUL, "tf32"), [], {"GPUTUNE_DISABLE": "0"}, Terms(numerics="tf32"), None),
            ((MATMUL, "tf32"), ["torch"], {"GPUTUNE_DISABLE": "1"}, Terms(), "switched off by GPUTUNE_DISABLE=1"),
            ((THREADS, None), ["cpu"], {}, Terms(), Reason.DEFAULT()),
            ((SEGMENTS, False), [], {}, Terms(), Reason.DEFAULT()),
            ((CUDNN, False), [], {}, Terms(), None),  # for a flag of torch's False is a choice
            ((MATMUL, "tf32"), ["torch", "cpu"], {}, Terms(), Reason.ELSEWHERE("torch", "cpu")),
            ((MATMUL, "tf32"), [], {}, Terms(numerics="rounding"), Reason.BEYOND_NUMERICS("rounding", "tf32")),
            ((AMP, "bfloat16"), [], {}, Terms(numerics="tf32"), Reason.BEYOND_NUMERICS("tf32", "mixed")),
            ((AMP, "bfloat16"), [], {}, Terms(), f"needs a line in the script: {AMP.USE}"),
        ],
    )  # fmt: skip
    def test_before_anything_that_the_user_set_counts(
        self, choice: tuple[Knob, Value], differences: list[str], environ: Any, terms: Terms, why: Why | None
    ) -> None:
        row = deciding.refused(*choice, differences, environ, terms)
        assert (row and row.reasons) == (why and (why,))
        assert row is None or row.status == "skipped"

    @pytest.mark.parametrize("name", knobs.names())
    def test_numerics_exclude_exactly_the_settings_above_the_limit(self, name: str) -> None:
        setting = knobs.load(name)
        beyond = [level for level in LEVELS if knobs.is_beyond(setting, "a value", level)]
        assert beyond == list(LEVELS[: LEVELS.index(setting.NUMERICS)])
        assert not knobs.is_beyond(setting, "a value", None)

    def test_torchs_own_default_is_never_beyond_a_limit(self) -> None:
        assert not knobs.is_beyond(MATMUL, MATMUL.DEFAULT, "exact")


class TestForCommand:
    OURS = {"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "3"}

    @pytest.mark.parametrize(
        ("environ", "ours", "ranks", "expected", "why"),
        [
            ({}, {}, False, (APPLIED, 3), THREE),
            ({}, {}, True, (APPLIED, 3), SHARED),
            ({"OMP_NUM_THREADS": "7"}, {}, False, (USERS, "7"), SEVEN),
            ({"OMP_NUM_THREADS": "7"}, {}, True, (USERS, "7"), SEVEN),
            ({"OMP_NUM_THREADS": ""}, {}, False, (USERS, ""), "already exported: OMP_NUM_THREADS="),
            ({"MKL_NUM_THREADS": "7"}, {}, False, (USERS, "7"), "already exported: MKL_NUM_THREADS=7"),
            ({"OMP_NUM_THREADS": "3"}, {}, False, (("applied", "environment"), 3), SAME),
            ({"OMP_NUM_THREADS": "3"}, OURS, False, (APPLIED, 3), SAME),
            ({"OMP_NUM_THREADS": "3"}, OURS, True, (APPLIED, 3), SHARED),
            ({"OMP_NUM_THREADS": "5"}, {"OMP_NUM_THREADS": "5"}, False, (APPLIED, 3), THREE),
            ({"OMP_NUM_THREADS": "7"}, OURS, False, (USERS, "7"), SEVEN),
        ],
    )  # fmt: skip
    def test_a_variable(self, environ: Any, ours: Any, ranks: bool, expected: Any, why: Why) -> None:
        row = deciding.for_command(THREADS, 3, environ, ours, Terms(ranks=ranks))
        assert ((outcome(row), row.after), row.reasons) == (expected, (why,))

    def test_the_allocators_newer_variable_is_the_users_word_too(self) -> None:
        row = deciding.for_command(SEGMENTS, True, {"PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}, {}, Terms())
        assert row.status == "kept-user"

    def test_a_flag_of_torchs_waits_for_torch_even_for_several_ranks(self) -> None:
        row = deciding.for_command(MATMUL, "tf32", {}, {}, Terms(ranks=True))
        assert (outcome(row), row.reasons) == (APPLIED, ("right after import torch",))


class TestInTorch:
    @pytest.mark.parametrize(
        ("current", "expected", "why"),
        [(3, APPLIED, "through its environment variable"), (7, USERS, "its environment variable asked for 3")],
    )
    def test_a_variable_is_read_back(self, current: int, expected: Any, why: Why) -> None:
        row = flags.read_back(THREADS, 3, current)
        assert (outcome(row), row.after, row.reasons) == (expected, current, (why,))

    @pytest.mark.parametrize(
        ("value", "current", "ours", "expected", "why"),
        [
            ("tf32", "ieee", "ieee", None, None),  # at torch's default: may be set
            ("ieee", "tf32", "tf32", None, None),  # what gputune itself set before
            ("ieee", "ieee", "ieee", ("applied", "torch"), "already had this value"),
            ("tf32", "tf32", "tf32", APPLIED, "already had this value"),
            ("tf32", "tf32", "ieee", ("applied", "program"), "already had this value"),
            ("ieee", "tf32", "ieee", KEPT, "the program or its environment had already set tf32"),
            ("tf32", "bf16", "tf32", KEPT, "the program or its environment had already set bf16"),
        ],
    )  # fmt: skip
    def test_a_flag_that_the_program_chose_stays(
        self, value: str, current: str, ours: str, expected: Any, why: Why | None
    ) -> None:
        row = flags.left_alone(MATMUL, value, current, "ieee", ours)
        assert (outcome(row), row and row.reasons) == (expected, why and (why,))

    @pytest.mark.parametrize(
        ("after", "expected", "why"),
        [
            ("tf32", APPLIED, "in this process"),
            ("ieee", ("failed", "profile"), "set to tf32, but reads back as ieee"),
        ],
    )
    def test_a_flag_that_was_set_is_read_back(self, after: str, expected: Any, why: Why) -> None:
        row = flags.after_apply(MATMUL, "tf32", "ieee", after, "in this process")
        assert (outcome(row), row.before, row.after, row.reasons) == (expected, "ieee", after, (why,))

    @pytest.mark.parametrize(("current", "expected"), [(1, ("skipped", "torch")), (2, USERS)])
    def test_a_flag_that_gputune_did_not_set(self, current: int, expected: Any) -> None:
        assert outcome(deciding.not_set_here(THREADS, current, 1)) == expected

    @pytest.mark.parametrize(
        ("override", "setting", "value", "status", "why"),
        [
            ("0", MATMUL, "tf32", "applied", Reason.TF32_FORBIDDEN()),
            ("0", CUDNN, True, "applied", Reason.TF32_FORBIDDEN()),
            ("0", CUDNN, False, "applied", None),
            ("1", MATMUL, "ieee", "applied", Reason.TF32_FORCED()),
            ("1", MATMUL, "tf32", "applied", None),
            ("", MATMUL, "tf32", "applied", None),
            ("0", THREADS, True, "applied", None),
            ("0", MATMUL, "tf32", "skipped", None),
        ],
    )
    def test_the_override_defeats_one_direction(
        self, override: str, setting: Knob, value: Value, status: Any, why: Why | None
    ) -> None:
        row = Applied(setting="a", after=value, status=status, reasons=("in this process",))
        changed = deciding.with_override(setting, row, {"NVIDIA_TF32_OVERRIDE": override})
        assert changed.reasons[1:] == ((why,) if why else ())


class TestNow:
    ROW = flags.after_apply(MATMUL, "tf32", "ieee", "tf32", "in this process")

    def test_what_the_program_changed_since_is_the_programs(self) -> None:
        row = flags.as_now(self.ROW, lambda: "ieee")
        assert (outcome(row), row.after) == (("changed-later", "program"), "ieee")
        assert row.reasons == ("the program later changed it from tf32",)

    def test_otherwise_the_row_stays(self) -> None:
        skipped = flags.skipped(MATMUL, "switched off by GPUTUNE_DISABLE=1")
        assert flags.as_now(self.ROW, lambda: "tf32") == self.ROW
        assert flags.as_now(skipped, lambda: "tf32") == skipped

    def test_a_value_that_cannot_be_read_adds_a_reason(self) -> None:
        row = flags.as_now(self.ROW, {}.popitem)
        assert row.reasons == ("in this process", "its current value cannot be read: KeyError")


class TestInCode:
    ROW = deciding.in_script(AMP, "bfloat16")
    NOTE = "16 workers were measured with 16 CPUs, and this process has 4"

    @pytest.mark.parametrize(
        ("line", "expected", "after", "reasons"),
        [
            (
                Line(value="bfloat16", used=False),
                ("skipped", "profile"),
                "bfloat16",
                (f"needs a line in the script: {AMP.USE}",),
            ),
            (Line(value="bfloat16", used=True), APPLIED, "bfloat16", ("used by the script",)),
            (
                Line(value="float16", used=True, family="mlp"),
                APPLIED,
                "float16",
                ("used by the script, with the value for mlp models",),
            ),
            (Line(value=None, used=True), ("skipped", "torch"), None, (Reason.DEFAULT(),)),
            (Line(value=0, used=True, notes=(NOTE,)), APPLIED, 0, ("used by the script", NOTE)),
            (Line(value=1, used=True, failure=NOTE), ("failed", "torch"), False, (NOTE,)),
        ],
    )
    def test_what_the_line_used(self, line: Line, expected: Any, after: Value, reasons: Any) -> None:
        row = deciding.in_code(AMP, self.ROW, line)
        assert (outcome(row), row.after, row.reasons) == (expected, after, reasons)

    def test_a_default_that_had_to_change_says_what_and_why(self) -> None:
        why = "a batch takes 100 MiB, and this process's share of /dev/shm is 1024 MiB"
        default = flags.skipped(PREFETCH, Reason.DEFAULT())
        row = deciding.in_code(PREFETCH, default, Line(value=1, used=True, notes=(why,)))
        assert (row.status, row.after, row.reasons) == ("applied", 1, ("used by the script", why))

    def test_a_choice_that_was_refused_stays_so_but_for_the_familys_own(self) -> None:
        refused = flags.skipped(AMP, Reason.ELSEWHERE("torch"))
        assert deciding.in_code(AMP, refused, Line(value="float16", used=True)) == refused
        assert deciding.in_code(AMP, refused, Line(value="float16", used=True, family="mlp")).status == "applied"


def test_an_exception_becomes_one_line_of_at_most_200_characters() -> None:
    assert str(flags.error_text(ValueError("a\n  b"))) == "ValueError: a b"
    assert flags.error_text(ValueError("x" * 999)) == f"ValueError: {'x' * 200}"
