"""A standard probe of a real GPU: on time, and what is known of an H200 found again."""

import subprocess
import sys
import time

import pytest
from making import serving

from gputune.advice._evidence import first
from gputune.probing import ProbeRequest
from gputune.probing.plan import plan
from gputune.profile import load

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "profile.yaml"
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "gputune", "probe", "-o", path], check=True)
    return load(path), time.monotonic() - started


@pytest.fixture(scope="module")
def h200(probed):
    profile, _ = probed
    if profile.fingerprint.gpu != "NVIDIA H200":
        pytest.skip(f"these figures are an H200's, and this is a {profile.fingerprint.gpu}")
    return profile


def test_it_ends_within_a_minute_with_nothing_missing(probed):
    profile, seconds = probed
    print(f"\nstandard probe: {seconds:.1f} s")
    assert seconds <= 60
    assert {gap.cause for gap in profile.gaps} <= {"not_supported"}
    assert {row.bench for row in profile.measurements} == {entry.name for entry in plan("cuda:0", ProbeRequest())}


def test_no_worker_is_left(probed):
    assert not serving()


def test_tf32_is_about_8_times_fp32(h200):
    assert h200.settings["matmul_precision"].value == "tf32"
    assert 7 < h200.settings["matmul_precision"].gain < 9.5


def test_errors_tell_the_precision_that_ran(h200):
    errors = {
        dtype: first(h200.measurements, "precision", "relative_error", dtype=dtype).median
        for dtype in ("float32", "tf32", "bfloat16", "float16")
    }
    assert errors["float32"] < 2e-6
    assert 2e-4 < errors["tf32"] < 4e-4
    assert 2e-3 < errors["bfloat16"] < 4e-3


def test_alignment_is_16_bytes_in_n_and_k(h200):
    choice = h200.settings["dimension_multiple"]
    assert choice.value == {"bfloat16": 8, "tf32": 4}
    assert choice.reason.startswith("bfloat16: N and K in multiples of 8; tf32: N and K in multiples of 4")


def test_channels_last_is_about_twice_as_fast_at_aligned_channels(h200):
    choice = h200.settings["channels_last"]
    assert choice.value is True
    assert 1.7 < choice.gain < 2.6


def test_what_pays_differs_by_kind_of_network(h200):
    amp = {family: choices["amp_dtype"].value for family, choices in h200.families.items()}
    assert amp == {"mlp": None, "convnet": "float16", "transformer": "bfloat16"}
    assert h200.settings["amp_dtype"].value == "bfloat16"
    assert h200.families["transformer"]["fused_optimizer"].value is True


def test_what_fp32_runs_in_is_found_for_every_operation(h200):
    for operation in ("matmul", "conv", "conv channels_last", "lstm"):
        on, off = (
            first(h200.measurements, "precision", "relative_error", operation=operation, flags=flags).median
            for flags in ("on", "off")
        )
        assert off < 1e-5
        assert 1e-4 < on < 1e-3


def test_the_default_back_end_of_attention_is_kept(h200):
    assert h200.settings["sdpa_backend"].value is None
    assert h200.settings["sdpa_backend"].gain == pytest.approx(1, abs=0.03)


def test_nobody_else_was_there(h200):
    found = {one.subject: one.severity for one in h200.findings if one.check == "measured_alone"}
    assert found["GPU 0"] == "OK"


def test_clock_and_power_under_load_are_recorded(h200):
    row = first(h200.measurements, "precision", "throughput", dtype="bfloat16")
    assert row.conditions["power_watts"] > 300
    assert row.conditions["sm_clock_mhz"] > 1000
    assert int(row.conditions["throttle_reasons"]) & 0x4  # the software power cap: normal on this part
