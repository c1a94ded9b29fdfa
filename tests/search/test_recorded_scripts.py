"""The search on scripts whose combinations took turns on an H100 or an H200, by their steps/s in each round, as
`tests/gpu/tuned_scripts.py` recorded them: of the MLP and the decoder all 16 ran, of the LSTM eight and of
`hf_trainer_in_turn` six, each in a process of its own; of the others, beside slow hosts, what a tune tries, in one
process. How long the GPU works for a step was traced in tunes of the same scripts on the same kind of GPU.
"""

import itertools
import json
from collections.abc import Mapping
from statistics import median
from typing import Any

import pytest
from recorded import MACHINES

from gputune.search.choice import Block, Tried, choice, gaining
from gputune.search.combination import DEFAULT, Combination
from gputune.search.search import Search

RATES: Mapping[str, Any] = {
    name: rows
    for gpu in ("nvidia-h100", "nvidia-h200")
    for name, rows in json.loads((MACHINES / gpu / "tuned_scripts.json").read_text()).items()
}
CANDIDATES: Mapping[str, Any] = {
    "matmul_precision": "tf32", "amp_dtype": "bfloat16", "fused_optimizer": True, "sdpa_backend": "flash",
    "compile": True,
}  # fmt: skip
BLOCKS = {
    "mlp": 400, "decoder": 400, "hf_trainer": 133, "accelerate_loop": 150, "hf_trainer_in_turn": 133,
    "mlp_on_h200": 400, "decoder_on_h200": 400, "lstm_on_h200": 400,
}  # fmt: skip
"""How many a search has; those of slow steps have two, and one that is not timed."""
AS_FAST_WITH_TF32 = ("accelerate_loop",)
"""The scripts whose compiled steps have the same kernels with TF32 as without, with which they were not recorded."""
CLOSE = 0.97


class Recorded:
    """A script whose blocks run as its rounds did, one after the other from the round `begin` on."""

    def __init__(self, name: str, begin: int) -> None:
        self.rates = {Combination.of(row["settings"]): row["rates"] for row in RATES[name]}
        self._rounds = {one: itertools.cycle([*rates[begin:], *rates[:begin]]) for one, rates in self.rates.items()}
        self._device_seconds = {Combination.of(row["settings"]): row.get("device_seconds") for row in RATES[name]}
        if name in AS_FAST_WITH_TF32:
            same = {one: one.plus("matmul_precision", "tf32") for one in self.rates if "compile" in one.values}
            for rows in (self.rates, self._rounds, self._device_seconds):
                rows |= {other: rows[one] for one, other in same.items()}
        self._name, self._blocks = name, 0

    def measure(self, combination: Combination) -> Block:
        self._blocks += 1
        return Block(rate=next(self._rounds[combination]), device_seconds=self._device_seconds[combination])

    def chosen(self) -> Combination:
        search = Search(
            measure=self.measure, used=lambda: self._blocks / BLOCKS[self._name],
            is_left_out=lambda one: one not in self.rates,
        )  # fmt: skip
        arms = search.final(search.best(CANDIDATES))
        ranked = gaining(arms)
        return choice([arm for arm, _ in ranked], None, must_be_certain=True).combination if ranked else DEFAULT


@pytest.mark.parametrize("begin", range(8))
@pytest.mark.parametrize("name", RATES)
def test_what_is_chosen_is_within_3_percent_of_the_best(name: str, begin: int) -> None:
    script = Recorded(name, begin)
    speeds = {one: median(rates) for one, rates in script.rates.items()}
    assert speeds[script.chosen()] >= CLOSE * max(speeds.values())


@pytest.mark.parametrize("name", RATES)
def test_from_any_round_on_the_choice_is_the_same_or_within_2_percent(name: str) -> None:
    speeds = {one: median(rates) for one, rates in Recorded(name, 0).rates.items()}
    chosen = [speeds[Recorded(name, begin).chosen()] for begin in range(8)]
    assert min(chosen) >= 0.98 * max(chosen)


def test_the_mlps_precisions_are_told_apart_beside_the_fused_optimizer() -> None:
    """Without that one it is what all of them wait for."""
    expected = Combination.of({"matmul_precision": "tf32", "fused_optimizer": True})
    assert {Recorded("mlp", begin).chosen() for begin in range(8)} == {expected}


def test_a_compiled_bert_has_tf32_whatever_that_is_worth_uncompiled() -> None:
    """The GPU works 21.2 ms a step for it uncompiled, with TF32 and without; 25.8 compiled, and 22.9 with TF32."""
    found = {str(Recorded("hf_trainer_in_turn", begin).chosen()) for begin in range(8)}
    assert found == {"bfloat16 + compile + tf32"}


def test_what_one_disturbed_round_put_behind_is_looked_at_again() -> None:
    """Lightning's ResNet on another H100, whose precisions had time for one round: the host was disturbed in that of
    mixed precision in channels_last, which leaves the GPU the least to do and is the fastest by a tenth otherwise. All
    other rates are those of the same tune and of processes of their own beside it.
    """
    rows = json.loads((MACHINES / "nvidia-h100" / "hurried_precisions.json").read_text())
    recorded = {Combination.of(row["settings"]): row for row in rows}
    rates = {one: itertools.cycle(row["rates"] or [row["first"]]) for one, row in recorded.items()}
    firsts = {one: row["first"] for one, row in recorded.items() if row["first"]}
    blocks = 0

    def measure(one: Combination) -> Block:
        nonlocal blocks
        blocks += 1
        rate = firsts.pop(one, None) or next(rates[one])
        return Block(rate=rate, device_seconds=recorded[one]["device_seconds"])

    search = Search(measure=measure, used=lambda: blocks / 50, is_left_out=lambda one: one not in recorded)
    candidates = {**CANDIDATES, "channels_last": True, "cudnn_benchmark": True}
    best = search.best(candidates)
    assert {len(arm.samples) for arm in search.tried if arm.stage == "precision"} == {1}
    assert str(best) == "bfloat16 + channels_last + fused_optimizer"


def test_what_seemed_faster_beside_a_noisy_host_is_left() -> None:
    """Accelerate's GPT-2 on another H100: "flash" seemed to gain 2 %, and compiled it cost a tenth. The GPU works as
    long with it, and less with the fused optimizer.
    """
    rows = json.loads((MACHINES / "nvidia-h100" / "options_beside_noise.json").read_text())
    arms = [Tried(combination=Combination.of(row["settings"]), stage="options", samples=row["rates"]) for row in rows]
    assert str(choice(arms, None).combination) == "bfloat16 + fused_optimizer + flash"
    for arm, row in zip(arms, rows, strict=True):
        arm.device_seconds = row["device_seconds"]
    assert str(choice(arms, None).combination) == "bfloat16 + fused_optimizer"
