"""Training steps on a CPU: which groups are measured, and what becomes of what does not fit or does not run."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from loaded import on_cpu, sorted_out
from making import steps_with
from recorded import facts_of

from gputune.advice import _training, _training_rows
from gputune.bench_process import Context
from gputune.benches import _training_groups, training_step
from gputune.benches._networks import NETWORKS, Size
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement

pytestmark = pytest.mark.usefixtures("one_thread")

FACTS = facts_of("cpu-only")
MLP = NETWORKS["mlp"]
TINY = {
    "mlp": Size(batch=16, width=64, depth=2),
    "convnet": Size(batch=4, width=8, depth=1, length=32, classes=4),
    "transformer": Size(batch=2, width=64, depth=1, length=16, classes=64),
    "recurrent": Size(batch=4, width=32, depth=1, length=8, classes=64),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, twelve_rounds: Any) -> Callable[..., None]:
    def leave(*names: str, **changes: Any) -> None:
        kept = {name: replace(NETWORKS[name], cpu=TINY[name], **changes) for name in names or NETWORKS}
        for name in set(NETWORKS) - set(kept):
            monkeypatch.delitem(NETWORKS, name)
        for name, network in kept.items():
            monkeypatch.setitem(NETWORKS, name, network)

    return leave


@pytest.fixture
def compiling_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda model: model)


def measured(
    budget: Any = "standard", facts: Facts = FACTS, seconds: float = 60
) -> tuple[list[Measurement], list[Gap]]:
    return sorted_out(training_step.measure(on_cpu(budget, seconds=seconds, facts=facts)))


def fitting(batch: int) -> Callable[[Size], Any]:
    def build(size: Size) -> Any:
        if size.batch > batch:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of")
        return MLP.build(size)

    return build


@pytest.mark.slow
def test_in_the_standard_budget_three_networks_in_two_groups(small: Callable[..., None]) -> None:
    small()
    rows, gaps = measured()
    assert not gaps
    networks = list(dict.fromkeys(row.params["network"] for row in rows))
    assert networks == ["mlp", "convnet", "transformer"]
    assert {(row.bench, row.metric, row.unit) for row in rows} == {("training_step", "throughput", "samples/s")}
    assert {row.params["stage"] for row in rows} == {"precision", "options"}
    assert not any("compile" in row.params or "cudnn_benchmark" in row.params for row in rows)
    for name in networks:
        size = TINY[str(name)]
        assert {row.params["batch"] for row in rows if row.params["network"] == name} == {size.batch}


@pytest.mark.slow
def test_each_precision_in_each_format_and_each_option_on_the_best_of_them(small: Callable[..., None]) -> None:
    small("mlp", "convnet")
    dtypes = on_cpu().dtypes
    rows, _ = measured()
    for name, formats in (("mlp", {False}), ("convnet", {False, True})):
        first, second = (_training_rows.steps(rows, name, stage) for stage in ("precision", "options"))
        assert {(_training_rows.precision_of(one), "channels_last" in one) for one in first} == {
            (dtype, last) for dtype in dtypes for last in formats
        }
        best = _training.first_best(rows, name)
        assert best is not None
        assert set(second) == {best, best.plus("fused_optimizer", True)}


@pytest.mark.slow
@pytest.mark.parametrize(("fits", "batch"), [(16, 16), (8, 8), (5, 4)])
def test_a_batch_that_does_not_fit_is_halved(small: Callable[..., None], fits: int, batch: int) -> None:
    small("mlp", build=fitting(fits))
    rows, gaps = measured()
    assert not gaps
    assert {row.params["batch"] for row in rows} == {batch}


@pytest.mark.slow
def test_and_at_last_that_is_a_gap_and_the_next_network_is_measured(
    small: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small("mlp", "transformer")
    monkeypatch.setitem(NETWORKS, "mlp", replace(NETWORKS["mlp"], build=fitting(1)))
    rows, gaps = measured()
    assert gaps == [Gap(fact="bench.training_step.mlp", reason="even a batch of 2 did not fit: CUDA out of memory")]
    assert {row.params["network"] for row in rows} == {"transformer"}


@pytest.mark.slow
def test_memory_that_ends_amid_the_options_is_a_gap_and_loses_nothing_that_was_measured(
    small: Callable[..., None],
) -> None:
    made: list[Any] = []

    def build(size: Size) -> Any:
        if len(made) == len(on_cpu().dtypes):
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        made.append(MLP.build(size))
        return made[-1]

    small("mlp", build=build)
    rows, gaps = measured()
    assert {row.params["stage"] for row in rows} == {"precision"}
    assert [gap.reason for gap in gaps] == ["CUDA out of memory"]


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["standard", "thorough"])
def test_mixed_precision_in_which_no_step_runs_is_a_gap_and_the_rest_is_measured(
    small: Callable[..., None], compiling_nothing: None, budget: str
) -> None:
    def loss(output: Any, targets: Any) -> Any:
        if output.dtype == torch.bfloat16:
            raise RuntimeError("could not create\na primitive descriptor")
        return MLP.loss(output, targets)

    small("mlp", loss=loss)
    rows, gaps = measured(budget, replace(FACTS, precision=replace(FACTS.precision, cpu_bfloat16=True)))
    reason = "a step in bfloat16 failed: could not create a primitive descriptor"
    assert gaps == [Gap(fact="bench.training_step.mlp", reason=reason)]
    assert not any("amp_dtype" in row.params for row in rows)
    assert {"precision", "options"} <= {row.params["stage"] for row in rows}


@pytest.mark.slow
def test_steps_too_slow_for_one_of_each_are_a_gap(small: Callable[..., None]) -> None:
    small("mlp")
    reason = "the budget ran out before the mlp's steps could be measured"
    assert measured(seconds=1e-6) == ([], [Gap(fact="bench.training_step.mlp", reason=reason)])


@pytest.mark.slow
def test_any_other_error_is_not_hidden(small: Callable[..., None]) -> None:
    def broken(size: Size) -> Any:
        raise RuntimeError("an illegal memory access")

    small("mlp", build=broken)
    with pytest.raises(RuntimeError, match="an illegal memory access"):
        measured()


@pytest.mark.slow
def test_a_fused_optimizer_that_fails_is_a_gap_and_the_rest_is_measured(
    small: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small("mlp")
    usual = torch.optim.SGD

    def without_fused(parameters: Any, *, fused: bool = False, **options: Any) -> Any:
        if fused:
            raise RuntimeError("`fused=True` requires\n all the params to be floating point")
        return usual(parameters, **options)

    monkeypatch.setattr(torch.optim, "SGD", without_fused)
    rows, gaps = measured()
    assert gaps == [
        Gap(
            fact="bench.training_step.mlp",
            reason="the fused optimizer failed: `fused=True` requires all the params to be floating point",
        )
    ]
    assert not any("fused_optimizer" in row.params for row in rows)
    assert [row.params["stage"] for row in rows][-1] == "options"


class TestThorough:
    @pytest.mark.slow
    def test_a_compiler_that_fails_is_a_gap_and_the_rest_is_measured(
        self, small: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(model: Any) -> Any:
            raise RuntimeError("Dynamo is not supported\non this Python")

        monkeypatch.setattr(torch, "compile", failing)
        small("recurrent")
        rows, gaps = measured("thorough")
        reason = "torch.compile failed: Dynamo is not supported on this Python"
        assert set(gaps) == {Gap(fact="bench.training_step.recurrent", reason=reason)}
        assert {row.params["stage"] for row in rows} == {"precision", "options"}
        assert not any("compile" in row.params for row in rows)

    @pytest.mark.slow
    def test_what_compiles_is_measured_and_the_seconds_it_took(
        self, small: Callable[..., None], compiling_nothing: None
    ) -> None:
        small("mlp")
        rows, gaps = measured("thorough")
        assert not gaps
        best = _training.first_best(rows, "mlp")
        assert best is not None
        fused = best.plus("fused_optimizer", True)
        assert set(_training_rows.steps(rows, "mlp", "options")) == {
            best,
            best.plus("compile", True),
            fused,
            fused.plus("compile", True),
        }
        (taken,) = [row for row in rows if row.metric == "compile_time"]
        assert taken.unit == "s"
        assert 0 < taken.median < 60
        assert {row.metric for row in rows} == {"throughput", "compile_time"}, "search and memory are a GPU's"


@pytest.mark.parametrize(
    ("network", "precision", "budget", "searched"),
    [
        ("convnet", "bfloat16", "standard", False),
        ("convnet", "bfloat16", "thorough", True),
        ("convnet", "tf32", "thorough", False),
        ("mlp", "bfloat16", "thorough", False),
    ],
)
def test_cudnns_search_is_tried_where_it_may_gain_in_the_thorough_budget_only(
    network: str, precision: str, budget: Any, searched: bool
) -> None:
    context = Context(device="cuda:0", facts=FACTS, seconds=1, budget=budget)
    best = steps_with(precision, channels_last=network == "convnet")
    bases = _training_groups.bases_of(context, network, best)
    assert bases[0] == best
    assert any("cudnn_benchmark" in base for base in bases) == searched
    assert any("compile" in base for base in bases) == (budget == "thorough")
