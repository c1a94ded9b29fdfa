"""The back ends of attention: which workloads are compared, what they cost, and what becomes of a back end that
refuses.
"""

from dataclasses import replace
from typing import Any

import pytest
from loaded import on_cpu, sorted_out

from gputune.benches import attention
from gputune.benches.attention import Shape, groups

DTYPES = ("float32", "tf32", "bfloat16", "float16")


def shape(**changes: Any) -> Shape:
    return replace(Shape(dtype="bfloat16", head=64, length=4096, causal=True), **changes)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    monkeypatch.setitem(attention.BATCH, 64, 1)
    monkeypatch.setattr(
        attention, "groups", lambda dtypes, budget: [shape(length=64, dtype="float32", head=head) for head in (64, 128)]
    )


def measured(seconds: float = 2, budget: str = "standard") -> tuple[list[Any], list[str]]:
    rows, gaps = sorted_out(attention.measure(on_cpu(budget, seconds)))
    return rows, [gap.reason for gap in gaps]


def test_the_standard_budget_compares_two_head_sizes_in_the_dtype_of_training() -> None:
    assert groups(DTYPES, "standard") == [shape(), shape(head=128)]
    assert groups(("float32", "float16"), "standard")[0].dtype == "float16"


def test_the_thorough_budget_compares_everything() -> None:
    every = groups(DTYPES, "thorough")
    assert len(set(every)) == 2 * 2 * 3 * 2
    assert {one.dtype for one in every} == {"bfloat16", "float16"}
    assert {one.size for one in every if one.head == 64} == {
        (4, 16, 1024, 64), (2, 16, 4096, 64), (1, 16, 16384, 64),
    }  # fmt: skip


def test_work_is_seven_matmuls_and_half_of_that_under_a_causal_mask() -> None:
    matmul = 2 * 2 * 16 * 4096**2 * 128
    assert shape(head=128, causal=False).tflop == pytest.approx(7 * matmul / 1e12)
    assert shape(head=128).tflop == pytest.approx(3.5 * matmul / 1e12)


def test_a_gpu_without_these_dtypes_is_a_gap() -> None:
    assert groups(("float32",), "thorough") == []
    assert measured() == ([], ["the device multiplies neither bfloat16 nor float16 natively"])


@pytest.mark.slow
def test_what_this_device_has_is_measured_beside_the_default_and_the_rest_is_said(
    small: None, twelve_rounds: Any
) -> None:
    rows, reasons = measured(60, "thorough")
    assert [row.params["backend"] for row in rows] == ["default", "flash"] * 2
    assert reasons == [
        "efficient has no kernel for the inputs at 2 of 2 shapes",
        "cudnn has no kernel for the inputs at 2 of 2 shapes",
    ]
    assert {(row.metric, row.unit, row.params["length"], row.params["causal"]) for row in rows} == {
        ("throughput", "TFLOP/s", 64, True)
    }
    assert rows[1].against(rows[0]) is not None


@pytest.mark.slow
def test_torchs_switches_are_put_back(small: None) -> None:
    import torch

    names = ("flash", "mem_efficient", "cudnn", "math")
    before = [getattr(torch.backends.cuda, f"{name}_sdp_enabled")() for name in names]
    measured(0.5, "thorough")
    assert [getattr(torch.backends.cuda, f"{name}_sdp_enabled")() for name in names] == before


def test_nothing_accumulates_from_step_to_step(small: None) -> None:
    step = attention.step_at(on_cpu(), shape(length=64, dtype="float32"))
    first, second = step(), step()
    assert len(first) == 3
    assert all(bool((one == other).all()) for one, other in zip(first, second, strict=True))


@pytest.mark.slow
def test_a_back_end_that_this_torch_does_not_name_is_a_gap(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(attention.BACKENDS, "cudnn", "ATTENTION_OF_A_LATER_TORCH")
    _, reasons = measured(0.5)
    assert "cudnn is no choice in this torch at 2 of 2 shapes" in reasons


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("No available kernel. Aborting execution.", "has no kernel for the inputs"),
        ("cuDNN Frontend error: no valid engine configs", "has no kernel for the inputs"),
        ("CUDA out of memory. Tried to allocate", "ran out of memory"),
    ],
)
def test_a_refusal_is_passed_over(text: str, why: str) -> None:
    assert attention.refused_because(RuntimeError(text)) == why


def test_any_other_error_is_raised() -> None:
    with pytest.raises(RuntimeError):
        attention.refused_because(RuntimeError("CUDA error: an illegal memory access was encountered"))


def test_where_torchs_own_choice_fails_nothing_is_compared(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: Any, **__: Any) -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate")

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", lacking)
    assert measured() == ([], ["default ran out of memory at 2 of 2 shapes"])


@pytest.mark.parametrize("seconds", [0, 1e-4])
def test_what_the_time_did_not_suffice_for_is_said(small: None, seconds: float) -> None:
    rows, reasons = measured(seconds)
    assert rows == []
    assert "the budget ran out at 2 of 2 shapes" in reasons
