"""Every return code of NVML, from every kind of call, and what `gputune check` makes of it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from stub_nvml.node import ADDRESSES, GPU, Node, Ran, asked, without_torch

CODES = [*range(1, 31), 999]
UNKNOWN_ERROR, TIMEOUT, LOST, NEEDS_RESET, MISMATCH = 999, 10, 15, 16, 18
BROKEN = (UNKNOWN_ERROR, TIMEOUT, LOST, NEEDS_RESET)
"""The codes with which a GPU says that it has failed."""
WITH_AN_OLDER_NAME = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons")
"""Calls in whose place an older one is asked, which still answers."""
MANY = 4

pytestmark = pytest.mark.slow


def each(faults: list[str], *words: str) -> dict[str, Ran]:
    with ThreadPoolExecutor(MANY) as pool:
        runs = pool.map(lambda fault: Node(fault, python=without_torch()).check(*words, timeout=5), faults)
        return dict(zip(faults, runs, strict=True))


def lost(ran: Ran) -> list[dict[str, Any]]:
    return [found for found in ran.findings("ERROR") if found["check"] == "gpu_lost"]


@pytest.mark.parametrize("codes", [CODES[:16], CODES[16:]], ids=["1-16", "17-999"])
def test_nvml_that_cannot_be_initialised_is_an_error(codes: list[int]) -> None:
    """Of driver_mismatch where that is what the code says, else of nvml_missing."""
    for fault, ran in each([f"nvmlInitWithFlags={code}" for code in codes]).items():
        by = {found["check"] for found in ran.findings("ERROR")}
        expected = "driver_mismatch" if fault.endswith(f"={MISMATCH}") else "nvml_missing"
        assert (ran.code, ran.left, expected in by) == (1, [], True), f"{fault}: {by}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("codes", [CODES[:16], CODES[16:]], ids=["1-16", "17-999"])
@pytest.mark.parametrize("call", ["nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"])
def test_a_version_that_cannot_be_read_is_unknown(call: str, codes: list[int]) -> None:
    for fault, ran in each([f"{call}={code}" for code in codes], "--fail-on", "never").items():
        assert (ran.code, ran.left) == (0, []), ran.said()
        assert {"driver.version", "driver.cuda"} & set(ran.gaps()), fault
        assert [gpu["name"] for gpu in ran.answer["facts"]["gpus"]] == [GPU, GPU]


@pytest.mark.parametrize("codes", [CODES[:16], CODES[16:]], ids=["1-16", "17-999"])
def test_a_count_that_cannot_be_read_does_not_pass(codes: list[int]) -> None:
    for fault, ran in each([f"nvmlDeviceGetCount_v2={code}" for code in codes], "--fail-on", "unknown").items():
        assert (ran.code, ran.left) == (1, []), f"{fault}: {ran.said()}"
        assert "gpu.count" in ran.gaps()


@pytest.mark.parametrize("code", BROKEN)
@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex_v2@1", "*@1"])
def test_a_gpu_that_answers_nothing_else_is_lost(call: str, code: int) -> None:
    ran = Node(f"{call}={code}", python=without_torch()).check()
    assert (ran.code, ran.left) == (1, []), ran.said()
    [found] = lost(ran)
    assert found["subject"] in ("GPU 1", ADDRESSES[1])
    assert ADDRESSES[1][5:] in f"{found['subject']} {found['message']} {found['remedy']}".lower()
    assert not [one for one in ran.findings("ERROR", "UNKNOWN") if one["subject"] == "GPU 0"]
    assert ran.answer["facts"]["gpus"][0]["name"] == GPU


@pytest.mark.sampled(3)
@pytest.mark.parametrize("codes", [CODES[:16], CODES[16:]], ids=["1-16", "17-999"])
@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex_v2@1", "*@1"])
def test_no_code_of_one_gpu_lets_a_gate_pass(call: str, codes: list[int]) -> None:
    """Whatever the code, of a GPU that tells nothing it is not said that it is healthy."""
    for fault, ran in each([f"{call}={code}" for code in codes], "--fail-on", "unknown").items():
        assert (ran.code, ran.left) == (1, []), f"{fault}: {ran.said()}"
        assert not [found for found in ran.findings("OK") if found["subject"] == "GPU 1"], fault
        assert not [found for found in ran.findings("ERROR") if found["subject"] == "GPU 0"], fault


@pytest.mark.exhaustive
def test_a_code_of_a_single_call_is_a_gap_of_its_own(tmp_path: Path) -> None:
    """NVML's "not found" and the like, from each call: nothing falls over, and the other GPU stays known."""
    calls = [
        call for call in asked(without_torch(), tmp_path, ["check"]) if call.endswith("@1") and "Handle" not in call
    ]
    for fault, ran in each([f"{call}=6" for call in calls], "--fail-on", "never").items():
        assert (ran.code, ran.left) == (0, []), f"{fault}: {ran.said()}"
        assert ran.answer["facts"]["gpus"][0]["name"] == GPU
        assert not lost(ran), fault


def test_a_lost_gpu_may_say_so_in_any_call(tmp_path: Path) -> None:
    calls = [call for call in asked(without_torch(), tmp_path, ["check"]) if call.endswith("@1")]
    calls = [call for call in calls if call.partition("@")[0] not in WITH_AN_OLDER_NAME]
    assert not [fault for fault, ran in each([f"{call}={LOST}" for call in calls]).items() if not lost(ran)]
