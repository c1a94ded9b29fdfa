"""A choice's value, gain, interval and reason agree with each other and with the stars of the charts: on recorded
machines whose rows are perturbed, in a first probe and in those that come after it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from answers import SHIPPED, facts_of_file, rows_of
from recorded import MACHINES, facts_of

from gputune import advice, knobs
from gputune.advice import Choice
from gputune.advice._evidence import range_text
from gputune.facts import Facts
from gputune.knobs import value_text
from gputune.measurement import Comparison, Measurement
from gputune.probing import recommending
from gputune.profile import Profile, load
from gputune.report import loading_charts, network_charts

SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 60))]
PROBES = 3
KEPT = ("final_loss", "relative_error")
"""Metrics that are no speed: they stay as they were recorded."""
VERDICTS = {"no gain: ": "no gain", "no certain gain of 3 %: ": "undecided"}


@cache
def recorded(name: str) -> tuple[Facts, Sequence[Measurement], str]:
    if name == "h200":
        return facts_of_file("nvidia-h200"), load(SHIPPED).measurements, "cuda:0"
    return facts_of("cpu-only", affinity=range(2)), rows_of(MACHINES / "two-cpus" / f"{name}.json"), "cpu"


def perturbed(rows: Sequence[Measurement], draw: random.Random) -> list[Measurement]:
    """Each row at another speed, with more or less scatter; some rows and benches are missing, or were cut short."""
    gone = {bench for bench in {row.bench: None for row in rows} if draw.random() < 0.1}
    return [_at_another_speed(row, draw) for row in rows if row.bench not in gone and draw.random() > 0.03]


def _at_another_speed(row: Measurement, draw: random.Random) -> Measurement:
    if row.metric in KEPT:
        return row
    speed, scatter = draw.lognormvariate(0, 0.08), draw.choice((0.002, 0.05))
    samples = tuple(one * speed * draw.lognormvariate(0, scatter) for one in row.samples)
    return replace(row, samples=samples[:3] if draw.random() < 0.05 else samples)


@cache
def probes(machine: str, seed: int) -> list[tuple[Facts, Profile]]:
    facts, rows, device = recorded(machine)
    draw, found = random.Random(seed), []
    standing = recommending.NOTHING_STANDS
    for day in range(PROBES):
        created = f"2026-11-2{day}T09:00:00Z"
        made = recommending.profile_of(facts, perturbed(rows, draw), device, created=created, standing=standing)
        standing = recommending.standing_of(made, made.fingerprint)
        found.append((facts, made))
    return found


def choices(profile: Profile) -> Iterator[tuple[str, str, Choice]]:
    for family, group in {"": profile.settings, **profile.families}.items():
        for name, choice in group.items():
            yield family, name, choice


def comparison(choice: Choice) -> Comparison:
    assert choice.gain is not None
    assert choice.interval is not None
    return Comparison(ratio=choice.gain, low=choice.interval[0], high=choice.interval[1], pairs=12)


every_machine = pytest.mark.parametrize("machine", ["h200", "idle", "beside-1-loop"])
every_seed = pytest.mark.parametrize("seed", SEEDS)


@every_machine
@every_seed
def test_a_reason_that_denies_a_gain_is_of_torchs_default_and_of_an_interval_that_denies_it(
    machine: str, seed: int
) -> None:
    for _, profile in probes(machine, seed):
        for _, name, choice in choices(profile):
            assert (choice.gain is None) == (choice.interval is None)
            for words, verdict in VERDICTS.items():
                if words in choice.reason:
                    assert choice.value == knobs.load(name).DEFAULT, choice
                    assert comparison(choice).verdict == verdict, choice
            if "not worth" in choice.reason:
                assert choice.value == knobs.load(name).DEFAULT, choice


@every_machine
@every_seed
def test_what_stands_has_its_own_gain_and_its_reason_tells_that(machine: str, seed: int) -> None:
    for facts, profile in probes(machine, seed):
        for family, name, choice in choices(profile):
            if choice.since is None:
                continue
            assert choice.reason.startswith(f"stands since {choice.since[:10]}")
            if choice.gain is None:
                continue
            if name not in ("matmul_precision", "dimension_multiple"):  # which have words of their own
                assert range_text(comparison(choice)) in choice.reason
            own = advice.of(name)
            if (
                hasattr(own, "gain_of")
                and choice.value != knobs.load(name).DEFAULT
                and not isinstance(choice.value, dict)
            ):
                speed = own.gain_of(facts, profile.measurements, choice.value, family)
                if speed.pairs:
                    assert (choice.gain, choice.interval) == (speed.ratio, speed.interval), (family, name, choice)


@every_machine
@every_seed
def test_a_reason_names_no_other_value_than_the_one_that_is_chosen(machine: str, seed: int) -> None:
    for _, profile in probes(machine, seed):
        settings = profile.settings
        multiples = settings["dimension_multiple"]
        stands = value_text(multiples.value) in multiples.reason
        for dtype, multiple in multiples.value.items():  # type: ignore[union-attr]
            said = re.search(rf"\b{dtype}: ([^;.]*)", multiples.reason)
            if said and not stands:
                assert (f"multiples of {multiple}" if multiple > 1 else "any ") in said[1], multiples
        ahead, workers = settings["dataloader_prefetch_factor"], settings["dataloader_workers"]
        assert (ahead.reason == "no workers, so nothing is prefetched") == (workers.value == 0)
        for _, name, choice in choices(profile):
            if choice.value is False and not choice.provisional:
                assert "all networks" not in choice.reason, (name, choice)
                assert "though" not in choice.reason or "not for every kind of network" in choice.reason, (name, choice)


def words_of(choices: Mapping[str, Choice], network: str) -> set[str]:
    """What a chart calls the combination that a network has by its choices."""
    values = {name: one.value for name, one in choices.items()}
    exact = "tf32" if values["matmul_precision"] == "tf32" else "float32"
    of_images = ("channels_last", "cudnn_benchmark") if network == "convnet" else ()
    flags = {name for name in ("compile", "fused_optimizer", *of_images) if values[name] is True}
    return {str(values["amp_dtype"] or exact), *flags}


def starred(rows: Sequence[tuple[Any, ...]]) -> Iterator[set[str]]:
    """What the rows with a star call their combinations."""
    alone: set[str] = set()
    for star, name, *_ in rows:
        if name.startswith("options on "):
            alone = set(name.removeprefix("options on ").rstrip(":").split())
        elif star:
            words, comma, _ = name.partition(",")  # behind which a combination is said not to have been measured
            yield {*(() if comma else alone), *words.split()} - {"+", "alone"}


@every_machine
@every_seed
def test_the_star_of_training_steps_is_on_the_row_that_is_chosen(machine: str, seed: int) -> None:
    for _, profile in probes(machine, seed):
        for chart in network_charts.training(profile):
            network = re.match(r"Training steps: (\w+)", chart.title)[1]  # type: ignore[index]
            own = {**profile.settings, **profile.families.get(network, {})}
            found = list(starred(chart.rows))
            assert all(one == words_of(own, network) for one in found)
            marked = [mark for picture in chart.pictures for marks in picture.rows.values() for mark in marks]
            assert any(mark.chosen for mark in marked) <= bool(found)


@every_machine
@every_seed
def test_the_star_of_loading_is_on_the_number_of_workers_that_is_chosen(machine: str, seed: int) -> None:
    for _, profile in probes(machine, seed):
        for chart in loading_charts.workers(profile):
            kind = ""
            for name, star, count, *_ in chart.rows:
                kind = str(name) or kind
                own = profile.families.get(kind, profile.settings)["dataloader_workers"]
                if star:
                    assert own.value == int(str(count))
                    assert not own.provisional
