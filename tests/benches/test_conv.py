"""Convolutions: which are measured and what they are compared with; and measured on this machine's CPU in a second or
two.
"""

import threading
import time
from dataclasses import replace
from itertools import product

import pytest
from loaded import on_cpu

from gputune.benches import conv
from gputune.benches._convolutions import Convolution, Point, baseline, groups
from gputune.facts.gap import Gap
from gputune.measurement import LOOKS

pytestmark = pytest.mark.usefixtures("one_thread")

H200 = ("float32", "tf32", "bfloat16", "float16")


def of_gpu(thorough=False, dtypes=H200, main="bfloat16"):
    return groups(dtypes, main, cuda=True, thorough=thorough)


def of_cpu(thorough=False):
    return groups(("float32", "bfloat16"), "bfloat16", cuda=False, thorough=thorough)


def points(found):
    return [point for group in found for point in group]


def rows(found, **params):
    return [point.params for point in points(found) if params.items() <= point.params.items()]


def plain(channels, **more):
    given = {"dtype": "bfloat16", "channels_last": True, **more}
    return Point(convolution=Convolution(channels_in=channels, channels_out=channels), **given)


class TestWork:
    def test_forward(self):
        assert Convolution(channels_in=3, channels_out=64).operations(2, 10) == 2 * 2 * 100 * 3 * 64 * 9
        assert Convolution(kernel=1, channels_in=8, channels_out=8).operations(1, 10) == 2 * 100 * 64

    def test_depthwise_each_channel_has_a_filter_of_its_own(self):
        assert Convolution(channels_in=8, channels_out=8, depthwise=True).operations(1, 10) == 2 * 100 * 8 * 9

    def test_training_is_three_convolutions_and_two_where_the_input_is_the_data(self):
        inner, first = (Convolution(channels_in=count, channels_out=64) for count in (64, 3))
        assert inner.operations(1, 10, training=True) == 3 * inner.operations(1, 10)
        assert first.operations(1, 10, training=True) == 2 * first.operations(1, 10)


class TestRows:
    def test_a_plain_convolution(self):
        assert plain(64).params == {
            "dtype": "bfloat16", "kernel": "3x3", "channels": 64, "pass": "forward", "channels_last": True,
        }  # fmt: skip

    def test_what_comes_out_is_named_where_it_differs(self):
        row = replace(plain(3), convolution=Convolution(channels_in=3, channels_out=64)).params
        assert (row["channels"], row["out"]) == (3, 64)

    def test_kernels_and_passes_have_names(self):
        found = of_gpu(thorough=True)
        assert {row["kernel"] for row in rows(found)} == {"3x3", "1x1", "depthwise 3x3"}
        assert {row["pass"] for row in rows(found)} == {"forward", "training"}

    @pytest.mark.parametrize("found", [of_gpu(), of_gpu(thorough=True), of_cpu(), of_cpu(thorough=True)])
    def test_nothing_is_measured_twice(self, found):
        every = [str(row) for row in rows(found)]
        assert len(every) == len(set(every))


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

    def test_the_search_is_left_to_the_training_steps(self):
        assert not [row for row in rows(of_gpu()) if "cudnn_benchmark" in row]

    def test_forward_only(self):
        assert {row["pass"] for row in rows(of_gpu())} == {"forward"}

    @pytest.mark.parametrize(("dtypes", "main"), [(("float32",), "float32"), (("float32", "float16"), "float16")])
    def test_an_older_gpu_is_measured_in_what_it_has(self, dtypes, main):
        assert {row["dtype"] for row in rows(of_gpu(dtypes=dtypes, main=main))} == {main}


class TestThorough:
    @pytest.mark.parametrize("run", ["forward", "training"])
    def test_channels_around_multiples_of_8_in_both_formats(self, run):
        around = [count + step for count in (8, 16, 32, 64) for step in (-1, 0, 1)]
        for channels, last in product([*around, 96, 128, 256], (False, True)):
            wanted = {"dtype": "bfloat16", "kernel": "3x3", "channels": channels, "channels_last": last, "pass": run}
            assert rows(of_gpu(thorough=True), **wanted)

    @pytest.mark.parametrize("dtype", H200)
    def test_every_dtype_in_both_formats_and_passes(self, dtype):
        for last, run in product((False, True), ("forward", "training")):
            assert rows(of_gpu(thorough=True), dtype=dtype, channels=128, channels_last=last, **{"pass": run})

    def test_the_search_is_compared_forward_only(self):
        assert {row["pass"] for row in rows(of_gpu(thorough=True), cudnn_benchmark=True)} == {"forward"}

    @pytest.mark.parametrize("dtype", ["tf32", "float32"])
    def test_the_first_row_that_decides_about_tf32_is_a_plain_forward_one(self, dtype):
        first = rows(of_gpu(thorough=True), dtype=dtype, channels=128, channels_last=True)[0]
        assert (first["kernel"], first["pass"]) == ("3x3", "forward")

    @pytest.mark.parametrize("found", [of_gpu(thorough=True), of_cpu(thorough=True)])
    def test_training_comes_last(self, found):
        passes = [row["pass"] for row in rows(found)]
        assert passes == sorted(passes)


class TestBaselines:
    GROUP = [
        plain(64, channels_last=False),
        plain(64, search=False),
        plain(64, search=True),
        plain(64, dtype="tf32", channels_last=False),
        plain(64, dtype="tf32"),
        plain(64, dtype="float32", channels_last=False),
        plain(64, dtype="float32"),
        plain(65),
    ]

    @pytest.mark.parametrize(
        ("point", "against"), [(0, None), (1, 0), (2, 1), (3, None), (4, 3), (5, 3), (6, 5), (7, None)]
    )
    def test_search_then_format_then_tf32(self, point, against):
        assert baseline(self.GROUP[point], self.GROUP) == (None if against is None else self.GROUP[against])

    @pytest.mark.parametrize("found", [of_gpu(), of_gpu(thorough=True), of_cpu(), of_cpu(thorough=True)])
    def test_whatever_is_in_channels_last_is_compared_where_the_other_format_is_measured(self, found):
        for group in found:
            for point in group:
                other = replace(point, channels_last=False, search=None)
                assert baseline(point, group) or point == other or other not in group


@pytest.mark.parametrize(("kind", "found"), [("cuda", of_gpu), ("cpu", of_cpu)])
@pytest.mark.parametrize("budget", ["standard", "thorough"])
def test_twelve_rounds_fit(kind, found, budget):
    arms = len(points(found(thorough=budget == "thorough")))
    assert arms * (LOOKS[0] + 1) * 0.015 < 0.8 * conv.SECONDS[kind][budget]


@pytest.mark.slow
def test_every_point_becomes_a_row_on_a_cpu_and_gets_its_share_of_the_time(this_machine, monkeypatch, twelve_rounds):
    shares = []

    def measured(context, arms, seconds, metric, *_):
        shares.append(seconds / len(arms))
        return twelve_rounds(context, arms, seconds, metric)

    monkeypatch.setitem(conv.IMAGES, "cpu", (1, 14))
    monkeypatch.setattr(conv, "interleave", measured)
    context = on_cpu(seconds=1000, facts=this_machine)
    found = list(conv.measure(context))
    wanted = groups(context.dtypes, context.main_dtype, cuda=False, thorough=False)
    assert min(shares) >= 0.9 * 1000 / len(points(wanted)), "what one group leaves is for the others"
    assert [row.params for row in found if row.metric == "throughput"] == rows(wanted)
    [error] = [row for row in found if row.metric == "relative_error"]
    assert error.params == {"dtype": "float32"}
    assert 0 < error.median < 1e-6


@pytest.mark.parametrize("group", of_cpu(thorough=True), ids=conv._title)
def test_every_kind_runs_forward_and_backward(this_machine, group):
    for point in group[::3]:
        conv._run(on_cpu("thorough", facts=this_machine), point, 1, 8)()


def test_training_computes_the_gradients_of_weight_and_of_all_inputs_but_the_first(this_machine):
    context = on_cpu("thorough", facts=this_machine)
    inner = plain(64, dtype="float32", training=True)
    first = replace(inner, convolution=Convolution(channels_in=3, channels_out=64))
    assert [tuple(one.shape) for one in conv._run(context, inner, 2, 8)()] == [(2, 64, 8, 8), (64, 64, 3, 3)]
    assert [tuple(one.shape) for one in conv._run(context, first, 2, 8)()] == [(64, 3, 3, 3)]


@pytest.mark.slow
def test_the_flag_of_the_search_is_put_back(this_machine):
    import torch

    torch.backends.cudnn.benchmark = True
    list(conv.measure(on_cpu(seconds=0.1, facts=this_machine)))
    assert torch.backends.cudnn.benchmark is True


@pytest.mark.slow
def test_what_searches_runs_with_the_flag_and_on_a_thread_of_its_own(this_machine, monkeypatch):
    import torch

    seen = set()

    def run(context, point, images, pixels):
        def note():
            alone = threading.current_thread() is not threading.main_thread()
            seen.add((point.search, torch.backends.cudnn.benchmark, alone))
            time.sleep(0.005)

        return note

    monkeypatch.setattr(conv, "_run", run)
    monkeypatch.setattr(conv, "_use", lambda context: None)
    group = [plain(64, channels_last=False), plain(64, search=False), plain(64, search=True)]
    found = list(conv._measured(on_cpu("standard", facts=this_machine), group, 0.5))
    assert [row.params.get("cudnn_benchmark") for row in found] == [None, False, True]
    assert seen == {(None, False, False), (False, False, False), (True, True, True)}


class TestOutOfMemory:
    GROUP = [plain(32, dtype="float32", channels_last=last) for last in (False, True)]

    @pytest.fixture
    def context(self, this_machine, monkeypatch, twelve_rounds):
        """A device that holds no more than `most` images."""
        import torch

        def arm(context, point, images, most=16, real=conv._arm):
            if images > most:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore words")
            return real(context, point, images)

        def most(images):
            monkeypatch.setitem(conv.IMAGES, "cpu", (64, 8))
            monkeypatch.setattr(conv, "interleave", twelve_rounds)
            monkeypatch.setattr(conv, "_arm", lambda *given: arm(*given, most=images))
            return on_cpu("standard", facts=this_machine)

        return most

    def test_half_as_many_images_until_they_fit_and_the_rows_say_so(self, context):
        found = list(conv._measured(context(16), self.GROUP, 0.5))
        assert [row.params["images"] for row in found] == [16, 16]

    def test_where_all_fit_nothing_is_said(self, context):
        found = list(conv._measured(context(64), self.GROUP, 0.5))
        assert [row.params for row in found] == [point.params for point in self.GROUP]

    def test_where_none_fit_there_is_a_gap(self, context):
        [gap] = conv._measured(context(4), self.GROUP, 0.5)
        assert gap == Gap(fact="bench.conv", reason="float32, 3x3, 8 images: CUDA out of memory")
