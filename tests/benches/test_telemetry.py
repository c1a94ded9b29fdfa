"""What the GPU did while it was measured is summed up, and nothing is invented where NVML is silent."""

from gputune.benches._telemetry import Telemetry, summary


def test_medians_of_clock_and_power_and_every_throttle_reason():
    samples = [
        {"sm_clock_mhz": 1400.0, "power_watts": 690.0, "throttle_reasons": 4.0},
        {"sm_clock_mhz": 1500.0, "power_watts": 700.4, "throttle_reasons": 32.0},
        {"sm_clock_mhz": 1980.0, "power_watts": 695.0, "throttle_reasons": 4.0},
    ]
    assert summary(samples) == {"sm_clock_mhz": 1500.0, "power_watts": 695.0, "throttle_reasons": 36.0}


def test_what_was_not_read_is_left_out():
    assert summary([{"power_watts": 300.0}, {}]) == {"power_watts": 300.0}
    assert summary([]) == {}


def test_without_a_gpu_there_is_nothing_to_sample():
    assert Telemetry(None).sample() == {}
