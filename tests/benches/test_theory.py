"""The theoretical peak, held against what NVIDIA's data sheets say at the clock that they say it for."""

import pytest

from gputune.benches.matmul_peak import flops_per_clock, peak_tflops
from gputune.facts.gpu import Gpu


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
def test_it_is_the_data_sheets(device: Gpu, dtype: str, clock_mhz: float, tflops: float) -> None:
    assert peak_tflops(device, dtype, clock_mhz) == pytest.approx(tflops, rel=0.01)


def test_only_a_geforce_sums_at_half_the_rate() -> None:
    assert flops_per_clock(gpu("8.9", 142), "bfloat16") == 2 * (flops_per_clock(RTX_4090, "bfloat16") or 0)
    assert flops_per_clock(gpu("8.0", 108, "GeForce"), "bfloat16") == flops_per_clock(A100, "bfloat16")


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        (gpu("99.0", 132), "bfloat16"), (gpu(None, 132), "bfloat16"), (gpu("9.0", None), "bfloat16"),
        (gpu("7.0", 80), "bfloat16"), (H200, "float4"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_guessed(device: Gpu, dtype: str) -> None:
    assert peak_tflops(device, dtype, 1830) is None
