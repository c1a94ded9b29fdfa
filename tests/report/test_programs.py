"""The last lines of a tune, and what is said before them."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from making import choices, profile, program, row

from gputune.facts.gap import Gap
from gputune.measurement import Comparison, Measurement
from gputune.profile import Confirmation, Guard, Program
from gputune.report.charts import Chart
from gputune.report.programs import (
    answer,
    charts,
    json_text,
    notes,
    print_program,
    seeming,
    untold,
    why_nothing,
)
from gputune.search.combination import DEFAULT, Combination
from gputune.trials.result import TuneResult

GAIN = Comparison(ratio=6.01, low=5.96, high=6.04, pairs=12)
GUARD = Guard(verdict="accepted", steps=100, reason="loss within FP32's own spread", fp32=((1.0, 1.1),), tuned=(1.05,))
TIMES = Confirmation(plain_ms=(102.0, 102.4, 103.0), tuned_ms=(17.0, 17.0, 17.1), cost_seconds=22.2)
FUSED = Combination.of({"fused_optimizer": True})


def tuned(
    gain: Comparison | None = GAIN, guard: Guard = GUARD, times: Confirmation | None = TIMES, **more: Any
) -> TuneResult:
    rows = (
        row("tune", "throughput", 10.0, stage="final"),
        row("tune", "throughput", 60.1, stage="final", fused_optimizer=True),
    )
    made = program(settings=choices({"fused_optimizer": True}), measurements=rows, guard=guard, confirmation=times)
    made = replace(made, gaps=(Gap(fact="channels_last", reason="it has no 2-d convolutions"),))
    made = made if gain else with_nothing(rows)
    return TuneResult(program=made, profile=profile(), combination=FUSED if gain else DEFAULT, gain=gain, **more)


def with_nothing(rows: Sequence[Measurement], **more: Any) -> Program:
    """A program for which a tune chose nothing after this last comparison."""
    return program(settings={}, by_numerics={}, measurements=tuple(rows), confirmation=None, **more)


def final(rates: Sequence[float], **values: Any) -> Measurement:
    return replace(row("tune", "throughput", 1.0, stage="final", **values), samples=tuple(rates))


PLAIN, SAME = final([10.0] * 12), final([10.1] * 12, fused_optimizer=True)
QUICK = final([18.0] * 12, amp_dtype="bfloat16")
OPEN = final([9.0, 14.0] * 6, fused_optimizer=True)
NOTHING = "nothing that was tried gains here: torch's defaults stay"
REFUSED = {"refused": (Gap(fact="bfloat16", reason="its loss is no number from step 3 on"),)}


class TestWhyNothing:
    def test_what_too_few_rounds_leave_open_seemed_faster(self) -> None:
        found = seeming(with_nothing([final([10.0, 11.0]), final([20.0, 21.0], fused_optimizer=True)]))
        assert found == (FUSED, pytest.approx(20.5 / 10.5))

    def test_as_did_what_noise_leaves_open(self) -> None:
        assert why_nothing(with_nothing([PLAIN, OPEN])) == (
            "nothing is certain: fused_optimizer seemed 1.15 times as fast, in too few steps or beside too much else "
            "to tell; tune again on an idle machine, or with more --steps"
        )

    def test_what_is_certainly_no_faster_did_not(self) -> None:
        assert seeming(with_nothing([PLAIN, SAME])) is None
        assert why_nothing(with_nothing([PLAIN, SAME])) == NOTHING

    def test_what_the_guard_refused_did_not_either_and_is_named(self) -> None:
        assert why_nothing(with_nothing([PLAIN, SAME, QUICK], **REFUSED)) == (
            f"{NOTHING}; what was faster, the guard refused"
        )
        assert "fused_optimizer seemed" in why_nothing(with_nothing([PLAIN, OPEN, QUICK], **REFUSED))

    def test_what_gains_nothing_in_whole_starts_is_named(self) -> None:
        slower = Gap(fact="bfloat16", reason="in whole starts 10 ms without it, and 12 with it", cause="no_gain")
        found = with_nothing([PLAIN, SAME, QUICK], refused=(slower,))
        said = "nothing was found that certainly or probably gains in whole starts: torch's defaults stay"
        assert why_nothing(found) == said
        assert "not used: bfloat16 (in whole starts 10 ms without it, and 12 with it)" in notes(found)
        beside = replace(tuned(gain=None, disturbed="others used up to 1.2 of 2 CPUs"), program=found)
        assert untold(beside, ["python"])[0] == f"train.py: {said}: others used up to 1.2 of 2 CPUs"

    def test_what_failed_is_named(self) -> None:
        gaps = (
            Gap(fact="compile", reason="it ended with exit code 1", cause="exited"),
            Gap(fact="channels_last", reason="it has no 2-d convolutions"),
        )
        assert why_nothing(with_nothing([PLAIN, SAME], gaps=gaps)) == f"{NOTHING}; compile failed"

    def test_a_profile_without_the_last_comparison_says_no_more_than_it_holds(self) -> None:
        assert why_nothing(with_nothing([])) == NOTHING

    def test_a_search_that_was_over_after_a_round_tells_nothing(self) -> None:
        rows = [replace(final([rate]), params={"stage": "options", **params}) for rate, params in
                ((46.0, {}), (140.0, {"fused_optimizer": True}))]  # fmt: skip
        assert why_nothing(with_nothing(rows)) == "nothing can be told, since too few steps were timed"

    def test_a_search_that_dropped_what_was_far_behind_tells_that_nothing_gains(self) -> None:
        rows = [replace(final([rate] * 4), params={"stage": "precision", **params}) for rate, params in
                ((46.0, {}), (20.0, {"amp_dtype": "bfloat16"}))]  # fmt: skip
        assert why_nothing(with_nothing(rows)) == NOTHING

    @pytest.mark.parametrize(
        ("scarce", "why", "remedy"),
        [
            ("length", "timed, and then it was at its end", "let it make more steps"),
            ("steps", "timed within --steps", "more --steps"),
            ("minutes", "timed within --minutes", "more --minutes"),
            ("seconds", "timed, which take long", "fewer settings"),
        ],
    )
    def test_what_was_used_up_is_named_with_what_helps(self, scarce: Any, why: str, remedy: str) -> None:
        said = untold(replace(tuned(gain=None), scarce=scarce), ["python"])
        assert said[0].endswith(why)
        assert remedy in said[1]
        beside = untold(replace(tuned(gain=None, disturbed="others used a CPU"), scarce=scarce), ["python"])[1]
        assert (remedy in beside) is (scarce != "seconds")
        assert beside.endswith("wait for a calm machine: gputune tune --wait 30 -- python")


class TestStars:
    def chart(self, one: Program) -> Chart:
        return next(iter(charts(one)))

    def test_what_was_chosen_has_a_star_in_the_last_comparison_and_its_workers_in_that_of_the_loader(self) -> None:
        rows = (
            final([10.0, 10.2]),
            replace(final([30.0, 31.0]), params={"stage": "loading", "dataloader_workers": 4}),
            final([10.0] * 12),
            final([40.0] * 12, dataloader_workers=4, amp_dtype="bfloat16"),
        )
        rows = (replace(rows[0], params={"stage": "loading"}), *rows[1:])
        values = {"amp_dtype": "bfloat16", "dataloader_workers": 4}
        found = self.chart(program(settings=choices(values), measurements=rows))
        assert [line[:4] for line in found.rows] == [
            ("loading", "defaults", "99.0", ""),
            ("*", "4 workers", "32.8", "~3.02x"),
            ("final", "defaults", "100", ""),
            ("*", "bfloat16 + 4 workers", "25.0", "4.00x (4.00-4.00)"),
        ]
        loading, last = found.pictures
        assert [(mark.value, mark.chosen) for (mark,) in loading.rows.values()] == [(1, False), (30.5 / 10.1, True)]
        assert [mark.chosen for (mark,) in last.rows.values()] == [False, True]
        assert found.star == "chosen"

    def test_a_stage_that_comes_again_is_a_comparison_of_its_own(self) -> None:
        def at(stage: str, rate: float, **values: Any) -> Measurement:
            return replace(final([rate] * 12), params={"stage": stage, **values})

        rows = (
            at("loading", 10.0),
            at("compile", 20.0),
            at("loading", 40.0),
            at("loading", 80.0, dataloader_workers=2),
        )
        found = self.chart(program(measurements=rows))
        assert [(line[0], line[3]) for line in found.rows] == [
            ("loading", ""),
            ("compile", ""),
            ("loading", ""),
            ("", "2.00x (2.00-2.00)"),
        ]

    def test_nothing_chosen_has_none(self) -> None:
        found = self.chart(with_nothing([PLAIN, SAME]))
        assert found.star == ""
        assert [line[0] for line in found.rows] == ["final", ""]

    def test_what_holds_only_probably_says_so(self) -> None:
        values = {name: replace(one, provisional=True) for name, one in choices({"fused_optimizer": True}).items()}
        assert self.chart(program(settings=values, measurements=(PLAIN, OPEN))).star == "probably best"


def test_a_profile_that_was_printed_is_applied_from_a_file() -> None:
    assert answer(tuned(), None, ["python", "train.py"]).endswith(
        "\nthe profile was printed; once it is in a file, PROFILE, type:\ngputune apply PROFILE -- python train.py"
    )


def said_at_the_end(found: TuneResult) -> str:
    return answer(found, Path("profile.yaml"), ["python", "train.py"])


NOT_COMPARED = Guard(verdict="off", steps=0)
UNKNOWN = Guard(verdict="unknown", steps=100, reason="no call of backward on a scalar was seen")
SLOWER = replace(TIMES, tuned_ms=(20.0, 20.0, 20.0))
FASTER = replace(TIMES, tuned_ms=(6.25, 6.25, 6.25))
LATE = replace(TIMES, cost_seconds=500.0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "train.py: 99.65 -> 16.58 ms a step, 6.01 times (5.96 to 6.04) as fast; loss within FP32's own spread\n"
             "its start takes 22.2 s longer; it is ahead after 260 steps (26.6 s)\n"
             "gputune apply profile.yaml -- python train.py"),
        ({"gain": None}, "train.py: nothing that was tried gains here: torch's defaults stay"),
        ({"disturbed": "others used up to 1.2 of 2 CPUs"},
         "probably 6.01 times (5.96 to 6.04) as fast; others used up to 1.2 of 2 CPUs meanwhile, so tune again"),
        ({"guard": NOT_COMPARED}, "; its loss was not compared\n"),
        ({"guard": UNKNOWN}, "could not be compared (no call of backward on a scalar was seen)"),
        ({"length": 300}, "it is ahead after 260 steps (26.6 s)\ngputune apply"),
        ({"length": 200}, "(26.6 s); a run of 200 steps, as here, takes longer with it\ngputune apply"),
        ({"times": SLOWER}, "train.py: 102.4 -> 20 ms a step in whole starts, 5.12 times as fast "
                            "(in one process, settings in turn: 5.96 to 6.04 times); loss within"),
        ({"times": FASTER}, "train.py: 102.4 -> 6.25 ms a step in whole starts, 16.4 times as fast (in one"),
        ({"times": LATE}, "\nits start takes 8 min 20 s longer; it is ahead after 5855 steps (9 min 59 s)\n"),
        ({"times": SLOWER, "disturbed": "others used up to 1.2 of 2 CPUs"},
         "train.py: 99.65 -> 16.58 ms a step, probably 6.01 times (5.96 to 6.04) as fast "
         "(102.4 -> 20 ms a step in whole starts); others"),
        ({"times": None}, "loss within FP32's own spread\nhow much longer its start takes is not known: --minutes was "
                          "over before; more of them tell\ngputune apply"),
        ({"more_memory": 1.5}, "; 1.50 times the memory\n"),
    ],
)  # fmt: skip
def test_the_last_lines_say_what_is_gained_or_why_nothing_is(more: dict[str, Any], said: str) -> None:
    assert said in said_at_the_end(tuned(**more))


@pytest.mark.parametrize("cost", [-1.3, 0.0, 0.08])
def test_a_start_that_takes_no_longer_than_a_step_saves_is_not_mentioned(cost: float) -> None:
    assert "its start" not in said_at_the_end(tuned(times=replace(TIMES, cost_seconds=cost)))


def test_a_program_that_trains_nothing_has_calls_and_outputs() -> None:
    guard = Guard(verdict="accepted", steps=20, reason="outputs within 0.3 % of FP32's")
    found = tuned(guard=guard)
    found = replace(found, program=replace(found.program, trains=False))
    assert said_at_the_end(found) == (
        "train.py: 99.65 -> 16.58 ms a call, 6.01 times (5.96 to 6.04) as fast; outputs within 0.3 % of FP32's\n"
        "its start takes 22.2 s longer; it is ahead after 260 calls (26.6 s)\n"
        "gputune apply profile.yaml -- python train.py"
    )
    off = replace(found, program=replace(found.program, guard=Guard(verdict="off", steps=0)))
    assert "; its outputs were not compared\n" in said_at_the_end(off)


def test_steps_that_wait_for_their_data() -> None:
    stream = io.StringIO()
    print_program(tuned(waits=0.964), stream)
    assert "its steps wait for data for 96 % of their time" in stream.getvalue()
    print_program(tuned(waits=0.01), quiet := io.StringIO())
    assert "wait for data" not in quiet.getvalue()


def test_what_was_tried_and_what_was_not() -> None:
    stream = io.StringIO()
    found = tuned()
    print_program(replace(found, program=replace(found.program, **REFUSED)), stream)
    text = stream.getvalue()
    assert "fused_optimizer" in text
    assert "6.01x" in text
    assert "not tried: channels_last (it has no 2-d convolutions)" in text
    assert "refused by the guard: bfloat16 (its loss is no number from step 3 on)" in text
    assert "Mean loss of 100 steps" in text


def test_how_long_the_gpu_works_for_a_step() -> None:
    result = tuned()
    rows = [replace(one, conditions={"device_ms": 12.3}) for one in result.program.measurements]
    print_program(replace(result, program=replace(result.program, measurements=tuple(rows))), stream := io.StringIO())
    assert "GPU, ms" in stream.getvalue()
    assert "12.3" in stream.getvalue()
    print_program(result, untraced := io.StringIO())
    assert "GPU, ms" not in untraced.getvalue()


def test_as_json_it_does_not_tell_who() -> None:
    gap = Gap(fact="x", reason="cannot read https://ann:s3cret@example.org/x and /home/ann/x")
    text = json_text(replace(tuned().program, gaps=(gap,)))
    assert '"entry": "train.py"' in text
    assert "cannot read https://example.org/x and /home/USER/x" in text
