"""Four standard probes of one machine with two CPUs, idle and beside one, two and four busy loops of others: what an
idle machine is slower with is never recommended, however much faster it looked beside them.
"""

import json
from typing import Any

import pytest
from recorded import MACHINES, facts_of

from gputune.advice import Choice, dataloader_workers, omp_threads
from gputune.measurement import Measurement
from gputune.probing import recommending
from gputune.strict_types import convert

TWO = facts_of("cpu-only", affinity=range(2))
LOOPS = ("beside-1-loop", "beside-2-loops", "beside-4-loops")


def rows(name: str) -> list[Measurement]:
    text = (MACHINES / "two-cpus" / f"{name}.json").read_bytes()
    return [convert(Measurement, one) for one in json.loads(text)]


def choices(measured: list[Measurement]) -> dict[str, Choice]:
    families = recommending.families(TWO, measured)
    own = {f"{family}.{name}": choice for family, group in families.items() for name, choice in group.items()}
    return recommending.choices(TWO, measured) | own


def gain(measured: list[Measurement], setting: Any, value: int) -> float:
    found = setting.gain_of(TWO, measured, value, "")
    return found.ratio if found else 0.0


def test_beside_loops_one_thread_or_several_workers_look_better_and_are_worse_on_the_idle_machine() -> None:
    assert gain(rows("idle"), omp_threads, 1) < 0.6
    assert max(gain(rows(name), omp_threads, 1) for name in LOOPS) > 1.5
    assert max(gain(rows("idle"), dataloader_workers, count) for count in (1, 2, 4)) < 1
    assert max(gain(rows(name), dataloader_workers, count) for name in LOOPS for count in (1, 2, 4)) > 2


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_recommended_beside_loops_is_torchs_default_or_what_the_idle_machine_recommends(name: str) -> None:
    unmeasured, idle, busy = choices([]), choices(rows("idle")), choices(rows(name))
    changed = {
        place: choice.value
        for place, choice in busy.items()
        if place not in unmeasured or choice.value != unmeasured[place].value
        if choice.evidence and not choice.provisional
    }
    assert changed.items() <= {place: choice.value for place, choice in idle.items()}.items()
    assert {"omp_threads", "dataloader_workers"} <= {place for place, choice in busy.items() if choice.provisional}


def test_samples_that_are_waited_for_get_their_workers_beside_a_loop_too() -> None:
    assert choices(rows("beside-1-loop"))["waiting.dataloader_workers"].value == 8
