"""Convolutions: which are measured and what they are compared with; and measured on this machine's CPU in a second or
two.
"""

from dataclasses import replace
from itertools import product

import pytest
from loaded import on_cpu

from gputune.benches import conv
from gputune.benches.conv import Point, baseline, groups
from gputune.facts.gap import Gap
from gputune.measurement import LOOKS

pytestmark = pytest.mark.usefixtures("one_thread")

H200 = ("float32", "tf32", "bfloat16", "float16")


def of_gpu(thorough=False, dtypes=H200, main="bfloat16"):
    return groups(dtypes, main, cuda=True, thorough=thorough)


def of_cpu(thorough=False):
    return groups(("float32", "bfloat16"), "bfloat16", cuda=False, thorough=thorough)


PLANS = [of_gpu(), of_gpu(thorough=True), of_cpu(), of_cpu(thorough=True)]


def rows(found, **params):
    every = [point.params for group in found for point in group]
    return [row for row in every if params.items() <= row.items()]


def plain(channels, **more):
    return Point(**{"dtype": "bfloat16", "channels": channels, "out": channels, "channels_last": True, **more})


class TestPoint:
    def test_its_work_is_the_multiplications_and_additions(self):
        assert plain(3, out=64).operations(2, 10) == 2 * 2 * 100 * 3 * 64 * 9

    def test_its_row_names_the_channels_that_come_out_where_these_differ(self):
        row = {"dtype": "bfloat16", "kernel": "3x3", "channels": 64, "pass": "forward", "channels_last": True}
        assert plain(64).params == row
        assert plain(3, out=64).params == {**row, "channels": 3, "out": 64}


class TestStandard:
    def test_formats_of_aligned_and_odd_channels(self):
        for channels, last in product((64, 128, 256, 63, 65), (False, True)):
            assert rows(of_gpu(), dtype="bfloat16", channels=channels, channels_last=last)

    def test_inputs_of_3_and_4_channels(self):
        found = [(row["channels"], row["channels_last"]) for row in rows(of_gpu(), out=64)]
        assert sorted(found) == [(3, False), (3, True), (4, True)]

    def test_tf32_beside_full_fp32_in_the_same_rounds(self):
        [group] = [group for group in of_gpu() if group[0].dtype == "tf32"]
        assert [(row["dtype"], row["channels"], row["channels_last"]) for row in rows([group])] == [
            ("tf32", 128, True), ("float32", 128, True),
        ]  # fmt: skip
        assert baseline(group[1], group) == group[0]

    @pytest.mark.parametrize(("dtypes", "main"), [(("float32",), "float32"), (("float32", "float16"), "float16")])
    def test_an_older_gpu_is_measured_in_what_it_has(self, dtypes, main):
        assert {row["dtype"] for row in rows(of_gpu(dtypes=dtypes, main=main))} == {main}


class TestThorough:
    def test_channels_around_multiples_of_8_in_both_formats(self):
        around = [count + step for count in (8, 16, 32, 64) for step in (-1, 0, 1)]
        for channels, last in product([*around, 96, 128, 256], (False, True)):
            assert rows(of_gpu(thorough=True), dtype="bfloat16", channels=channels, channels_last=last)

    @pytest.mark.parametrize("dtype", H200)
    def test_every_dtype_in_both_formats(self, dtype):
        for last in (False, True):
            assert rows(of_gpu(thorough=True), dtype=dtype, channels=128, channels_last=last)


class TestBaselines:
    GROUP = [
        plain(64, channels_last=False),
        plain(64),
        plain(64, dtype="tf32", channels_last=False),
        plain(64, dtype="tf32"),
        plain(64, dtype="float32", channels_last=False),
        plain(64, dtype="float32"),
        plain(65),
    ]

    @pytest.mark.parametrize(("point", "against"), [(0, None), (1, 0), (2, None), (3, 2), (4, 2), (5, 4), (6, None)])
    def test_format_then_tf32(self, point, against):
        assert baseline(self.GROUP[point], self.GROUP) == (None if against is None else self.GROUP[against])


@pytest.mark.parametrize("found", PLANS)
def test_nothing_is_measured_twice_and_whatever_has_another_format_is_compared_with_it(found):
    every = [str(row) for row in rows(found)]
    assert len(every) == len(set(every))
    for group in found:
        for point in group:
            other = replace(point, channels_last=False)
            assert baseline(point, group) or point == other or other not in group


@pytest.mark.parametrize(("kind", "found"), [("cuda", of_gpu), ("cpu", of_cpu)])
@pytest.mark.parametrize("budget", ["standard", "thorough"])
def test_twelve_rounds_fit(kind, found, budget):
    arms = len(rows(found(thorough=budget == "thorough")))
    assert arms * (LOOKS[0] + 1) * 0.015 < 0.8 * conv.SECONDS[kind][budget]


@pytest.mark.slow
def test_every_point_becomes_a_row_on_a_cpu(this_machine, monkeypatch, twelve_rounds):
    monkeypatch.setitem(conv.IMAGES, "cpu", (1, 14))
    context = on_cpu(facts=this_machine)
    found = list(conv.measure(context))
    wanted = groups(context.dtypes, context.main_dtype, cuda=False, thorough=False)
    assert [row.params for row in found if row.metric == "throughput"] == rows(wanted)


def test_memory_that_does_not_suffice_is_a_gap(monkeypatch):
    monkeypatch.setitem(conv.IMAGES, "cpu", (1 << 32, 28))
    gaps = [found for found in conv.measure(on_cpu()) if isinstance(found, Gap)]
    assert {gap.fact for gap in gaps} == {"bench.conv"}
    assert gaps[0].reason.startswith("float32, 32 to 64 channels: ")
