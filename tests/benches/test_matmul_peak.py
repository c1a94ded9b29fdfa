"""The fastest matmul: what is measured where, and what it is held against."""

from dataclasses import replace
from typing import Any

import pytest
from loaded import on_cpu
from making import row
from recorded import facts_of

from gputune.bench_process import Context
from gputune.benches import matmul_peak
from gputune.benches._peak_search import LARGEST
from gputune.benches.matmul_peak import flops_per_clock
from gputune.facts.gap import Gap
from gputune.facts.gpu import Gpu


def on_gpu(**overrides: Any) -> Context:
    return Context(device="cuda:0", facts=facts_of("nvidia-h200-x1", **overrides), seconds=7, budget="standard")


def steady(clock_mhz: float | None = 1830.0) -> Any:
    conditions = {"sm_clock_mhz": clock_mhz} if clock_mhz else {}
    return replace(row("matmul_peak", "steady", 600.0, dtype="bfloat16"), conditions=conditions)


@pytest.mark.slow
def test_on_a_cpu_it_is_a_steady_rate_with_its_shape() -> None:
    here = on_cpu(seconds=1)
    (found,) = list(matmul_peak.measure(here))
    assert not isinstance(found, Gap)
    assert (found.metric, found.unit) == ("steady", "TFLOP/s")
    assert len(found.samples) == 12
    assert set(found.params) == {"dtype", "m", "n", "k"}
    assert found.params["dtype"] == here.main_dtype
    assert all(0 < int(found.params[side]) <= 4096 for side in "mnk")


def test_the_theoretical_peak_is_that_of_the_clock_under_load() -> None:
    (peak,) = matmul_peak.theoretical(on_gpu(), "bfloat16", steady())
    assert peak.metric == "theoretical"
    assert peak.median == pytest.approx(989, rel=0.001)
    assert peak.params == {"dtype": "bfloat16", "multiprocessors": 132, "flops_per_clock": 4096}
    assert peak.conditions == {"sm_clock_mhz": 1830.0}


def test_without_a_clock_or_a_known_gpu_there_is_none() -> None:
    assert list(matmul_peak.theoretical(on_gpu(), "bfloat16", steady(clock_mhz=None))) == []
    assert list(matmul_peak.theoretical(on_gpu(), "float4", steady())) == []
    assert list(matmul_peak.theoretical(on_cpu(), "bfloat16", steady())) == []


@pytest.mark.parametrize(("free", "side"), [(140 << 30, LARGEST), (4 << 30, 11264), (1 << 30, 5632)])
def test_the_search_stays_within_half_of_the_memory(free: int, side: int) -> None:
    assert matmul_peak.largest_side(free) == side
    assert 16 * side**2 <= free / 2


def test_a_dtype_that_fails_is_a_gap_and_the_next_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = on_cpu().matmul_dtypes

    def peaks(context: Context, dtype: str, seconds: float) -> Any:
        if dtype == first:
            raise RuntimeError("cublasLtMatmulAlgoGetHeuristic\n failed")
        yield row("matmul_peak", "steady", seconds, dtype=dtype)

    monkeypatch.setattr(matmul_peak, "_peaks", peaks)

    def broken(device: str) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr("torch.cuda.synchronize", broken)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        list(matmul_peak.measure(replace(on_gpu(), budget="thorough")))
    gap, *measured = matmul_peak.measure(on_cpu("thorough", 3))
    assert gap == Gap(fact=f"bench.matmul_peak.{first}", reason="cublasLtMatmulAlgoGetHeuristic failed")
    assert [one.params["dtype"] for one in measured if not isinstance(one, Gap)] == others


def gpu(capability: str | None, multiprocessors: int | None, brand: str = "NVIDIA") -> Gpu:
    return Gpu(index=0, name="a GPU", brand=brand, compute_capability=capability, multiprocessor_count=multiprocessors)


H200 = gpu("9.0", 132)
A100 = gpu("8.0", 108)
RTX_4090 = gpu("8.9", 128, "GeForce")


@pytest.mark.parametrize(
    ("device", "dtype", "clock_mhz", "tflops"),
    [
        (H200, "bfloat16", 1830, 989), (H200, "float16", 1830, 989), (H200, "tf32", 1830, 495),
        (H200, "float8", 1830, 1979), (H200, "float32", 1980, 67),
        (A100, "bfloat16", 1410, 312), (A100, "tf32", 1410, 156), (A100, "float32", 1410, 19.5),
        (RTX_4090, "bfloat16", 2520, 165), (RTX_4090, "tf32", 2520, 82.6), (RTX_4090, "float32", 2520, 82.6),
        (gpu("7.0", 80), "float16", 1530, 125), (gpu("7.5", 40), "float16", 1590, 65),
    ],
)  # fmt: skip
def test_the_peak_is_the_data_sheets(device: Gpu, dtype: str, clock_mhz: float, tflops: float) -> None:
    per_clock = (flops_per_clock(device, dtype) or 0) * (device.multiprocessor_count or 0)
    assert per_clock * clock_mhz / 1e6 == pytest.approx(tflops, rel=0.01)


def test_only_a_geforce_sums_at_half_the_rate() -> None:
    assert flops_per_clock(gpu("8.9", 142), "bfloat16") == 2 * (flops_per_clock(RTX_4090, "bfloat16") or 0)
    assert flops_per_clock(gpu("8.0", 108, "GeForce"), "bfloat16") == flops_per_clock(A100, "bfloat16")


@pytest.mark.parametrize(
    ("device", "dtype"),
    [(gpu("99.0", 132), "bfloat16"), (gpu(None, 132), "bfloat16"), (gpu("7.0", 80), "bfloat16"), (H200, "float4")],
)
def test_the_peak_of_what_is_not_known_is_not_guessed(device: Gpu, dtype: str) -> None:
    assert flops_per_clock(device, dtype) is None
