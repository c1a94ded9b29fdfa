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
from gputune.facts.gap import Gap


def on_gpu(**overrides: Any) -> Context:
    return Context(device="cuda:0", facts=facts_of("nvidia-h200-x1", **overrides), seconds=7, budget="standard")


def steady(clock_mhz: float | None = 1830.0) -> Any:
    conditions = {"sm_clock_mhz": clock_mhz} if clock_mhz else {}
    return replace(row("matmul_peak", "steady", 600.0, dtype="bfloat16"), conditions=conditions)


@pytest.mark.slow
def test_on_a_cpu_it_is_a_steady_rate_with_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul_peak, "STEADY_BLOCK_SECONDS", 0.02)
    here = on_cpu(seconds=1)
    (found,) = list(matmul_peak.measure(here))
    assert not isinstance(found, Gap)
    assert (found.metric, found.unit) == ("steady", "TFLOP/s")
    assert len(found.samples) == 12
    assert set(found.params) == {"dtype", "m", "n", "k"}
    assert found.params["dtype"] == here.main_dtype
    assert all(0 < int(found.params[side]) <= 4096 for side in "mnk")


def test_the_theoretical_peak_is_that_of_the_clock_under_load() -> None:
    (peak,) = matmul_peak._theoretical(on_gpu(), "bfloat16", steady())
    assert peak.metric == "theoretical"
    assert peak.median == pytest.approx(989, rel=0.001)
    assert peak.params == {"dtype": "bfloat16", "multiprocessors": 132, "flops_per_clock": 4096}
    assert peak.conditions == {"sm_clock_mhz": 1830.0}


def test_without_a_clock_or_a_known_gpu_there_is_none() -> None:
    assert list(matmul_peak._theoretical(on_gpu(), "bfloat16", steady(clock_mhz=None))) == []
    assert list(matmul_peak._theoretical(on_gpu(), "float4", steady())) == []
    assert list(matmul_peak._theoretical(on_cpu(), "bfloat16", steady())) == []


def test_the_search_stays_within_half_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    products = object.__new__(matmul_peak._Products)
    products._context = on_gpu()
    for free, side in ((140 << 30, LARGEST), (4 << 30, 11264), (1 << 30, 5632)):
        monkeypatch.setattr(Context, "free_bytes", lambda self, free=free: free)
        assert products._largest() == side
        assert 16 * side**2 <= free / 2


def test_a_dtype_that_fails_is_a_gap_and_the_next_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "matmul_dtypes", property(lambda self: ("float8", "bfloat16")))

    def peaks(context: Context, dtype: str, seconds: float) -> Any:
        if dtype == "float8":
            raise RuntimeError("cublasLtMatmulAlgoGetHeuristic\n failed")
        yield row("matmul_peak", "steady", seconds, dtype=dtype)

    monkeypatch.setattr(matmul_peak, "_peaks", peaks)

    def broken(device: str) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr("torch.cuda.synchronize", broken)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        list(matmul_peak.measure(replace(on_gpu(), budget="thorough")))
    gap, measured = matmul_peak.measure(on_cpu("thorough", 3))
    assert gap == Gap(fact="bench.matmul_peak.float8", reason="cublasLtMatmulAlgoGetHeuristic failed")
    assert not isinstance(measured, Gap)
    assert (measured.params["dtype"], measured.samples[0]) == ("bfloat16", 1.5)
