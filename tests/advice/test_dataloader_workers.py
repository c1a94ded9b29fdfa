"""How many workers load, where they gain over none: of the user's dataset the fewest that are nearly the best, or that
keep a known consumer fed; of synthetic samples the most that are not told from the best.
"""

from dataclasses import replace
from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.advice import Choice
from gputune.advice.dataloader_workers import (
    KINDS,
    SAME_SAMPLES,
    SINGLE_BATCH,
    bench_of,
    curve,
    of_family,
    of_kind,
    preferred,
)
from gputune.advice.dataloader_workers import recommend as _recommend

HOST = facts_of()
BATCH = 32
MEDIAN = 1.0035
"""The median of a `row` with a rate of 1."""


def recommend(rows: list[Any]) -> Choice:
    return _recommend(HOST, rows)


def measured(kind: str = "decoding", **rates: float) -> list[Any]:
    return [row("dataloader", "throughput", rate, kind=kind, workers=int(name[1:])) for name, rate in rates.items()]


def loaded(kind: str = "dataset", rates: dict[int, float] | None = None, **params: Any) -> list[Any]:
    return [
        row("dataset", "throughput", rate, kind=kind, workers=count, batch=BATCH, **params)
        for count, rate in (rates or {}).items()
    ]


def short(rows: list[Any], samples: int = 2) -> list[Any]:
    return [replace(one, samples=one.samples[:samples]) for one in rows]


def noisy(one: Any, *factors: float) -> Any:
    return replace(one, samples=tuple(sample * factors[n % len(factors)] for n, sample in enumerate(one.samples)))


class TestSyntheticSamples:
    def test_the_most_that_their_short_rounds_do_not_tell_from_the_best(self) -> None:
        choice = recommend(measured(w0=100.0, w2=200.0, w4=380.0, w8=285.0, w16=270.0))
        assert choice.value == 4
        assert choice.gain == pytest.approx(3.8, rel=0.01)
        assert choice.reason.startswith("samples that cost CPU time came 3.8 times (3.")
        assert "as fast with 4 workers as with none" in choice.reason
        assert choice.evidence == ("dataloader",)

    @pytest.mark.parametrize("rounds", [4, 32])
    @pytest.mark.parametrize(("most", "chosen"), [(101.0, 16), (99.0, 16), (78.0, 16), (76.0, 8)])
    def test_which_are_those_within_30_percent(self, rounds: int, most: float, chosen: int) -> None:
        choice = recommend(short(measured(w0=20.0, w4=50.0, w8=100.0, w16=most), rounds))
        assert choice.value == chosen
        assert choice.reason.endswith("; such short rounds do not tell it from fewer workers") == (99.0 >= most > 76.0)

    @pytest.mark.parametrize(
        ("rates", "chosen"),
        [({"w1": 106.0, "w2": 101.0}, 1), ({"w4": 125.0, "w8": 104.5}, 4), ({"w4": 145.0, "w8": 135.0}, 8)],
    )
    def test_the_most_are_chosen_only_where_they_gain_more_than_that_over_none(
        self, rates: dict[str, float], chosen: int
    ) -> None:
        assert recommend(measured(w0=100.0, **rates)).value == chosen

    def test_none_is_left_only_for_what_gains(self) -> None:
        assert recommend(short(measured(w0=100.0, w4=99.0, w8=98.0), 4)).value == 0

    def test_more_workers_than_the_fastest_only_if_they_certainly_gain_themselves(self) -> None:
        found = short(measured(w0=100.0, w2=214.0, w4=196.0), 4)
        assert recommend(found).value == 2, "by far, as twice and more is"

    @pytest.mark.parametrize("rates", [{"w1": 99.0, "w2": 80.0}, {"w1": 101.0, "w2": 102.0}])
    def test_no_gain(self, rates: dict[str, float]) -> None:
        choice = recommend(measured(w0=100.0, **rates))
        assert choice.value == 0
        assert choice.reason.startswith("no gain: ")

    def test_what_might_gain_is_no_certain_gain(self) -> None:
        none, four = measured(w0=100.0, w4=110.0)
        choice = recommend([none, noisy(four, 1.0, 1.3, 0.8)])
        assert choice.value == 0
        assert choice.reason.startswith("no certain gain of 3 %: ")

    def test_rows_of_the_search_are_shorter_and_never_chosen(self) -> None:
        choice = recommend(measured(w0=100.0, w4=380.0) + short(measured(w2=400.0, w16=900.0)))
        assert choice.value == 4
        best = preferred(curve(measured(w0=1.0, w4=4.0) + short(measured(w2=9.0)), "decoding"))
        assert best is not None
        assert best.workers == 4

    def test_too_few_samples_of_all_leave_it_to_torch(self) -> None:
        choice = recommend(short(measured(w0=100.0, w4=380.0)))
        assert (choice.value, choice.gain) == (0, None)
        assert choice.reason == "too few samples in this run to tell"

    def test_a_few_pairs_suffice_where_all_of_them_say_so_by_far(self) -> None:
        choice = recommend(short(measured(w0=100.0, w4=380.0), 4))
        assert (choice.value, choice.gain) == (4, pytest.approx(3.8))
        assert "3.8 times (3.8 to 3.8) as fast with 4 workers as with none" in choice.reason

    def test_a_gain_that_its_workers_cannot_bring_is_not_believed(self) -> None:
        """Threads of the training process that others disturbed: 2 workers on 2 CPUs seemed 4.57 times as fast."""
        choice = recommend(measured(w0=100.0, w2=457.0))
        assert (choice.value, choice.provisional, choice.evidence) == (0, True, ("dataloader",))
        assert choice.reason.startswith("not believed: samples that cost CPU time came 4.57 times (4.")
        assert choice.reason.endswith("2 workers seemed faster than can be; loading without any was disturbed")
        assert recommend(measured(w0=100.0, w4=457.0)).value == 4
        for rates in ({"w2": 457.0, "w4": 440.0}, {"w1": 190.0, "w2": 180.0}):
            assert recommend(measured(w0=100.0, **rates)).provisional, "more workers do not make it any truer"

    @pytest.mark.parametrize(("samples", "rate"), [(3, 380.0), (7, 199.0)])
    def test_but_not_fewer_pairs_and_no_smaller_gain(self, samples: int, rate: float) -> None:
        choice = recommend(short(measured(w0=100.0, w4=rate), samples))
        assert (choice.value, choice.gain) == (0, None)

    @pytest.mark.parametrize(
        "rows",
        [
            [],
            measured(w0=100.0),
            measured(w2=100.0, w4=200.0),
            measured("memory", w0=1.0, w4=9.0),
            [row("dataloader", "throughput", 9.0, kind="decoding", workers=0, batch=size) for size in (4, 8)],
        ],
    )
    def test_not_measured(self, rows: list[Any]) -> None:
        choice = recommend(rows)
        assert (choice.value, choice.gain) == (0, None)
        assert choice.reason == "not measured in this run's budget"


class TestOfKind:
    def test_each_kind_has_its_own(self) -> None:
        rows = (
            measured(w0=1.0, w4=4.0)
            + measured("memory", w0=9.0, w4=1.0)
            + measured("waiting", w0=1.0, w4=4.0, w16=16.0)
        )
        assert [of_kind(rows, kind) for kind in KINDS] == [4, 0, 16]

    @pytest.mark.parametrize("rows", [[], measured("memory", w0=9.0), short(measured("memory", w0=1.0, w4=4.0))])
    def test_none_where_nothing_or_too_little_was_measured_to_tell(self, rows: list[Any]) -> None:
        assert of_kind(rows, "memory") is None

    def test_a_rate_of_zero_is_no_rate(self) -> None:
        assert of_kind(measured(w0=1.0, w4=4.0, w8=0.0), "decoding") == 4
        assert of_kind(measured(w0=0.0, w4=0.0), "decoding") is None


class TestOfFamily:
    ROWS = (
        measured(w0=100.0, w4=380.0) + measured("memory", w0=1000.0, w4=20.0) + measured("waiting", w0=10.0, w16=150.0)
    )

    @pytest.mark.parametrize(
        ("family", "value", "came"),
        [
            ("memory", 0, "no gain: slices of memory came 0.02 times (0.02 to 0.02) as fast with 4"),
            ("waiting", 16, "samples that keep their reader waiting came 15 times (15 to 15) as fast with 16"),
        ],
    )
    def test_samples_for_which_the_general_choice_is_not_made_have_their_own(
        self, family: str, value: int, came: str
    ) -> None:
        choice = of_family(HOST, self.ROWS, family)
        assert choice is not None
        assert (choice.value, choice.reason, choice.evidence) == (
            value,
            f"{came} workers as with none",
            ("dataloader",),
        )
        assert recommend(self.ROWS).value == 4

    @pytest.mark.parametrize("family", ["memory", "waiting", "decoding", "convnet"])
    @pytest.mark.parametrize("rows", [ROWS[:2], short(ROWS), ROWS + loaded(rates={0: 100.0, 2: 190.0})])
    def test_none_for_others_nor_where_it_was_hardly_measured_nor_beside_the_users_own_dataset(
        self, rows: list[Any], family: str
    ) -> None:
        assert of_family(HOST, rows, family) is None


class TestTheUsersDataset:
    def test_few_rounds_give_the_fewest_too(self) -> None:
        assert recommend(short(loaded(rates={0: 20.0, 8: 99.0, 16: 100.0}), 4)).value == 8

    @pytest.mark.parametrize(("fewer", "chosen"), [(98.0, 4), (97.5, 4), (96.0, 8)])
    def test_it_gets_the_fewest_workers_within_3_percent_of_the_best(self, fewer: float, chosen: int) -> None:
        assert recommend(loaded(rates={0: 30.0, 4: fewer, 8: 100.0})).value == chosen

    def test_told_by_pairs_since_what_disturbs_a_round_disturbs_all_that_are_in_it(self) -> None:
        none, four, eight = loaded(rates={0: 30.0, 4: 99.0, 8: 100.0})
        wild = (1.0, 0.5, 0.7, 1.6, 0.9)
        assert recommend([none, noisy(four, *wild), noisy(eight, *wild)]).value == 4
        apart = [none, noisy(four, 1.0, 1.0, 1.0), noisy(eight, 1.1, 1.1, 0.2)]
        assert recommend(apart).value == 8, "in most rounds they were 11 % faster"

    def test_it_is_chosen_for_whatever_synthetic_samples_say(self) -> None:
        choice = recommend(measured(w0=100.0, w16=900.0) + loaded(rates={0: 100.0, 2: 190.0, 3: 192.0}))
        assert choice.value == 2
        assert choice.evidence == ("dataset",)
        assert choice.reason.startswith("the dataset's batches came 1.9 times")
        assert "slices of memory" not in choice.reason

    def test_whose_rows_the_other_options_are_chosen_by(self) -> None:
        assert bench_of(loaded(rates={0: 1.0, 2: 2.0})) == "dataset"
        assert bench_of(measured(w0=1.0, w2=2.0)) == "dataloader"
        assert bench_of([row("dataset", "batch_bytes", 1e6)]) == "dataloader"

    def test_what_a_consumer_waits_is_said_with_the_choice_and_with_torchs_default(self) -> None:
        rates = {0: BATCH / 0.1 / MEDIAN, 4: BATCH / 0.025 / MEDIAN}
        reason = recommend(loaded(rates=rates)).reason
        assert reason.endswith("; a consumer waits 25 ms for each batch of 32, with torch's defaults 100 ms")

    def test_where_nothing_is_gained_it_waits_the_same(self) -> None:
        choice = recommend(loaded(rates={0: BATCH / 0.002 / MEDIAN, 1: 1.0}))
        assert choice.value == 0
        assert choice.reason.endswith("; a consumer waits 2 ms for each batch of 32")

    @pytest.mark.parametrize(
        ("params", "reason"), [({"same_samples": True}, SAME_SAMPLES), ({"epoch_batches": 1}, SINGLE_BATCH)]
    )
    def test_a_stream_that_every_worker_yields_whole_and_a_single_batch_get_none(
        self, params: dict[str, Any], reason: str
    ) -> None:
        choice = recommend(loaded(rates={0: 100.0}, **params))
        assert (choice.value, choice.gain, choice.evidence, choice.reason) == (0, None, ("dataset",), reason)

    def test_too_few_samples(self) -> None:
        choice = recommend(short(loaded(rates={0: 100.0, 4: 380.0})))
        assert choice.value == 0
        assert choice.reason.startswith("too few samples in this run to tell")


class TestWithAConsumersStep:
    """A step of 50 ms for a batch of 32 takes 640 samples/s when it never waits."""

    STEP = 50.0

    def paced(self, waits: dict[int, float]) -> list[Any]:
        rates = {count: 1000 * BATCH / MEDIAN / (self.STEP + wait) for count, wait in waits.items()}
        return loaded(rates=rates, step_ms=self.STEP)

    def test_the_fewest_that_keep_it_fed(self) -> None:
        choice = recommend(self.paced({0: 80.0, 1: 20.0, 2: 0.4, 3: 0.1, 8: 0.0}))
        assert choice.value == 2
        assert choice.reason.endswith("; a step of 50 ms waits 0.4 ms for its batch of 32, with torch's defaults 80 ms")

    @pytest.mark.parametrize(("wait", "chosen"), [(0.45, 2), (0.55, 4)])
    def test_fed_is_to_wait_for_less_than_a_hundredth_of_the_step(self, wait: float, chosen: int) -> None:
        assert recommend(self.paced({0: 80.0, 2: wait, 4: 0.0})).value == chosen

    def test_where_none_keeps_it_fed_the_fewest_that_are_nearly_the_best(self) -> None:
        choice = recommend(self.paced({0: 80.0, 2: 40.0, 4: 21.0, 8: 20.0}))
        assert choice.value == 4
        assert "a step of 50 ms waits 21 ms for its batch" in choice.reason

    def test_a_consumer_that_is_fed_without_workers_gets_none(self) -> None:
        choice = recommend(self.paced({0: 0.3, 2: 0.0}))
        assert (choice.value, choice.evidence) == (0, ("dataset",))
        assert choice.reason.startswith("no gain: ")
        assert choice.reason.endswith("; a step of 50 ms waits 0.3 ms for its batch of 32")


class TestWhereSharedMemoryIsShort:
    UNSENT = loaded(rates={0: 100.0, 4: 400.0, 8: 800.0}, sent=False)

    def test_they_are_never_recommended_but_told(self) -> None:
        choice = recommend(self.UNSENT + loaded(rates={0: 100.0, 1: 99.0, 2: 198.0}))
        assert choice.value == 2
        assert choice.gain == pytest.approx(1.98, rel=0.01)
        assert choice.reason.endswith("; were /dev/shm large enough, it would be 8 workers (see shm_size)")

    def test_where_not_even_one_workers_batches_fit_it_says_so(self) -> None:
        choice = recommend(self.UNSENT + loaded(rates={0: 100.0}))
        assert (choice.value, choice.evidence) == (0, ("dataset",))
        assert choice.reason.startswith("/dev/shm is too small for what even one worker hands over; a consumer waits ")
        assert choice.reason.endswith("it would be 8 workers (see shm_size)")

    def test_where_more_would_not_be_better_nothing_is_told(self) -> None:
        choice = recommend(
            loaded(rates={0: 100.0, 2: 200.0, 8: 201.0}, sent=False) + loaded(rates={0: 100.0, 2: 200.0})
        )
        assert choice.value == 2
        assert "shm" not in choice.reason

    def test_alone_they_are_no_measurement_of_the_dataset(self) -> None:
        assert bench_of(self.UNSENT) == "dataloader"
        assert recommend(self.UNSENT).reason == "not measured in this run's budget"
