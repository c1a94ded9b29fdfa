"""`gputune check` on a node whose driver hangs, crashes, lies or answers with an error: what it says, and when."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from stub_nvml.node import GPU, START_UP_SECONDS, Node, Ran, asked, short, with_stand_in, without_torch

from gputune.deploy import node_checks

ENDS = {"hang": "no_answer", "deaf": "no_answer", "spin": "no_answer", "crash": "killed", "abort": "killed",
        "exit": "exited"}  # fmt: skip
"""Each fault that stops NVML, and the cause that the gap of the very call has."""
PYTHONS = {"torch": lambda: sys.executable, "stand-in": with_stand_in, "without torch": without_torch}
MANY = 4
ANSWERED_SECONDS = 2.0
"""How long NVML may take for all of its answers: with less, a busy machine does not reach the call that stops it."""


def blamed(ran: Ran, call: str) -> list[str]:
    gpu = call.partition("@")[2]
    errors = [found for found in ran.findings("ERROR") if found["check"] in ("nvml_missing", "gpu_lost")]
    told = [f"{found['subject'] or ''}: {found['message']}" for found in errors]
    wrong = []
    if not any(short(call) in text for text in told):
        wrong.append(f"no ERROR names {short(call)}: {told}")
    if gpu and not any(re.search(rf"GPU {gpu}\b", text) for text in told):
        wrong.append(f"no ERROR names GPU {gpu}: {told}")
    if gpu and any(re.search(r"GPU 0\b", text) for text in told):
        wrong.append(f"the healthy GPU 0 is blamed: {told}")
    return wrong


def ended(ran: Ran, seconds: float, code: int = 1) -> list[str]:
    wrong = []
    if ran.code != code:
        wrong.append(f"exit code {ran.code}, not {code}")
    if ran.seconds > seconds + START_UP_SECONDS:
        wrong.append(f"it took {ran.seconds:.1f} s")
    if ran.left:
        wrong.append(f"it left {ran.left}")
    return wrong


def stopped(node: Node, call: str, cause: str) -> list[str]:
    ran = node.check(timeout=ANSWERED_SECONDS)
    wrong = ended(ran, ANSWERED_SECONDS)
    try:
        gaps, gpus = ran.gaps(), ran.answer["facts"]["gpus"]
    except ValueError:
        return [*wrong, ran.said()]
    wrong += blamed(ran, call)
    causes = [gap["cause"] for gap in gaps.values()]
    if cause not in causes:
        wrong.append(f"no gap is {cause}: {sorted(map(str, set(causes)))}")
    if "@" in call and (not gpus or gpus[0]["name"] != GPU):
        wrong.append("what GPU 0 had answered is gone")
    if cause == "no_answer" and not any(
        f"{ANSWERED_SECONDS:g} s" in found["message"] for found in ran.findings("ERROR")
    ):
        wrong.append("no ERROR says how long it waited")
    return wrong


def of_all(calls: list[str], fault: str, python: str) -> dict[str, list[str]]:
    with ThreadPoolExecutor(MANY) as pool:
        wrong = pool.map(lambda call: stopped(Node(f"{call}={fault}", python=python), call, ENDS[fault]), calls)
        return {call: found for call, found in zip(calls, wrong, strict=True) if found}


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS)
def test_a_healthy_node_is_healthy(python: str) -> None:
    names = [name for name in node_checks.NAMES if name != "gpu_absent"]  # which asks torch
    ran = Node(python=PYTHONS[python]()).check("--only", ",".join([*names, "temperature", "throttling"]))
    assert (ran.code, ran.findings("ERROR", "WARNING", "UNKNOWN"), ran.left) == (0, [], [])


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["deaf", "spin", "crash", "abort", "exit"])
def test_nvml_may_stop_in_any_way(fault: str) -> None:
    call = "nvmlDeviceGetTemperature@1"
    assert not stopped(Node(f"{call}={fault}", python=without_torch()), call, ENDS[fault])


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("python", "fault"), [("without torch", fault) for fault in ("hang", "crash", "exit")] + [("stand-in", "hang")]
)
def test_whatever_call_stops_is_named(python: str, fault: str, tmp_path: Path) -> None:
    """Every call that it makes: the list is what it asks of a healthy driver."""
    path = PYTHONS[python]()
    calls = [call for call in asked(path, tmp_path, ["check"]) if not call.endswith("@0")]
    assert len(calls) > 40
    assert not of_all(calls, fault, path)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetTemperature@1"])
@pytest.mark.parametrize("fault", ["hang", "crash"])
def test_with_a_real_torch_too(call: str, fault: str) -> None:
    assert not stopped(Node(f"{call}={fault}"), call, ENDS[fault])


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["nvmlInitWithFlags=hang", "nvmlInitWithFlags=999", "nvmlInitWithFlags=9",
                                   "nvmlDeviceGetCount_v2=hang", "nvmlDeviceGetCount_v2=999"])  # fmt: skip
def test_nvml_alone_is_blamed_for_itself(fault: str) -> None:
    """Not the container, nor GPUs that it could not list."""
    ran = Node(fault, python=without_torch()).check()
    assert {found["check"] for found in ran.findings("ERROR")} == {"nvml_missing"}


@pytest.mark.slow
def test_the_first_gpu_may_hang() -> None:
    """Then nothing is known of the second, which is not called healthy."""
    ran = Node("nvmlDeviceGetHandleByIndex_v2@0=hang", python=without_torch()).check()
    assert not ended(ran, 1)
    assert not [found for found in ran.findings("OK") if found["subject"] in ("GPU 0", "GPU 1")]
    assert any("GPU 0" in f"{found['subject']} {found['message']}" for found in ran.findings("ERROR"))
    assert "GPU 1" not in {found["subject"] for found in ran.findings("ERROR")}


@pytest.mark.slow
def test_what_was_answered_before_is_kept() -> None:
    ran = Node("nvmlDeviceGetTemperature@1=hang", python=without_torch()).check()
    first, second = ran.answer["facts"]["gpus"]
    assert (first["name"], first["health"]["temperature_celsius"]) == (GPU, 31)
    assert (second["name"], second["health"]["temperature_celsius"]) == (GPU, None)
    assert [found["check"] for found in ran.findings("OK") if found["subject"] == "GPU 0"]
    gaps = ran.gaps()
    assert gaps["gpu.1.temperature_celsius"]["cause"] == "no_answer"
    assert "not_asked" in {gap["cause"] for fact, gap in gaps.items() if fact.startswith("gpu.1.")}
    assert not {fact for fact, gap in gaps.items() if fact.startswith("gpu.0.") and gap["cause"] != "not_supported"}


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 3])
def test_its_deadline_is_the_one_that_was_given(seconds: float) -> None:
    ran = Node("nvmlInitWithFlags=hang", python=without_torch()).check(timeout=seconds)
    assert not ended(ran, seconds)
    assert ran.seconds > seconds
    assert any(f"{seconds:g} s" in found["message"] for found in ran.findings("ERROR"))


@pytest.mark.slow
def test_a_driver_that_is_slow_is_waited_for() -> None:
    ran = Node("nvmlInitWithFlags=slow:2", python=without_torch()).gputune("check", "--json")
    assert [gpu["name"] for gpu in ran.answer["facts"]["gpus"]] == [GPU, GPU]
    assert not [found for found in ran.findings("ERROR") if found["check"] in ("nvml_missing", "gpu_lost")]


@pytest.mark.slow
def test_many_slow_calls_together_have_one_deadline() -> None:
    """Not one each."""
    ran = Node("*@1=slow:0.4", python=without_torch()).check("--fail-on", "unknown", "--only", "gpu_lost")
    assert not ended(ran, 1)
    assert [found["severity"] for found in ran.answer["findings"] if found["subject"] == "GPU 1"] == ["UNKNOWN"]
    assert "not_asked" in {gap["cause"] for gap in ran.gaps().values()}


@pytest.mark.slow
@pytest.mark.parametrize("faults", ["", "nvmlDeviceGetTemperature@1=hang", "nvmlDeviceGetTemperature@1=crash"])
def test_a_library_that_prints_does_not_spoil_the_json(faults: str) -> None:
    ran = Node(f"say=1;{faults}", python=without_torch()).check("--fail-on", "never")
    assert not ended(ran, 1, code=0)
    assert "nvmlDevice" not in ran.stderr
    assert [gpu["name"] for gpu in ran.answer["facts"]["gpus"]] == [GPU, GPU]


@pytest.mark.slow
def test_what_the_library_starts_ends_with_it() -> None:
    ran = Node("threads=3;forks=2;nvmlDeviceGetName@1=hang", python=without_torch()).check()
    assert not ended(ran, 1)
    healthy = Node("threads=3;forks=2", python=without_torch()).check("--fail-on", "never")
    assert not ended(healthy, 1, code=0)


@pytest.mark.slow
@pytest.mark.parametrize("count", ["count:4294967295", "count:9", "count:1000000", "count:0", "4", "999", "hang"])
def test_a_count_may_be_anything(count: str) -> None:
    ran = Node(f"nvmlDeviceGetCount_v2={count}", python=without_torch()).check("--fail-on", "unknown")
    assert not ended(ran, 1)
    assert len(ran.answer["facts"]["gpus"]) < 100
    assert len(ran.stdout) < 1_000_000
    if count == "count:9":  # two answer; the other seven are not there
        assert [gpu["name"] for gpu in ran.answer["facts"]["gpus"][:2]] == [GPU, GPU]


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"]
)
def test_a_list_without_an_end_ends_at_the_deadline(call: str) -> None:
    ran = Node(f"{call}@1=huge", python=without_torch()).check("--fail-on", "unknown")
    assert not ended(ran, 1)
    assert ran.answer["facts"]["gpus"][0]["name"] == GPU


@pytest.mark.exhaustive
@pytest.mark.slow
def test_noise_in_every_answer_is_no_answer(tmp_path: Path) -> None:
    """It is a gap, or a value that no check takes for health; nothing falls over it."""
    path = without_torch()
    calls = [call for call in asked(path, tmp_path, ["check"]) if call.endswith("@1")]
    faults = [f"{call}=garbage" for call in calls if "Handle" not in call]

    def wrong(fault: str) -> list[str]:
        ran = Node(fault, python=path).check("--fail-on", "never")
        return ended(ran, 1, code=0) or ([] if ran.answer["facts"]["gpus"][0]["name"] == GPU else [ran.said()])

    with ThreadPoolExecutor(MANY) as pool:
        found = dict(zip(faults, pool.map(wrong, faults), strict=True))
    assert not {fault: text for fault, text in found.items() if text}
    assert not ended(Node(";".join(faults), python=path).check("--fail-on", "never"), 1, code=0)


@pytest.mark.slow
def test_text_and_json_agree() -> None:
    node = Node("nvmlDeviceGetTemperature@1=hang", python=without_torch())
    done = node.gputune("check", "--timeout", "1")
    assert not ended(done, 1)
    errors = re.sub(r"\s", "", done.stdout).partition("warning")[0]  # lines are wrapped anywhere
    assert errors.startswith("error")
    assert "gpu_lost" in errors
    assert "nvmlDeviceGetTemperatureofGPU1doesnotanswerwithin1s" in errors


@pytest.mark.slow
@pytest.mark.parametrize("only", ["temperature", "ecc_errors", "gpu_lost,nvml_missing"])
def test_a_node_gate_does_not_let_it_pass(only: str) -> None:
    """Also where only a check is asked that has no answer now."""
    node = Node("nvmlDeviceGetHandleByIndex_v2@1=hang", python=without_torch())
    ran = node.check("--only", only, "--fail-on", "unknown")
    assert not ended(ran, 1)


@pytest.mark.slow
def test_without_device_files_it_ends_in_time_too() -> None:
    for call in ("nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetName@1"):
        ran = Node(f"{call}=hang", python=without_torch(), mounted=False).check()
        assert not ended(ran, 1, ran.code)
        assert ran.code == 1, ran.said()
