"""Every verb on a node whose driver hangs or crashes: it ends in its time, with the exit code that is documented."""

import json
import sys
from pathlib import Path

import pytest
from making import ELSEWHERE, executable, profile, written
from stub_nvml.node import START_UP_SECONDS, Node, Ran, asked, with_stand_in, without_torch

from gputune.deploy.slurm import health_check

pytestmark = pytest.mark.slow

NVML_SECONDS = 5.0
"""The time in which NVML must have told all that is asked of it."""
PROBE_SECONDS = 60.0
FAULTS = ("nvmlInitWithFlags=hang", "nvmlDeviceGetCount_v2=hang", "nvmlDeviceGetHandleByIndex_v2@0=hang",
          "nvmlDeviceGetName@0=deaf", "nvmlDeviceGetUUID@1=spin", "nvmlInitWithFlags=crash",
          "nvmlDeviceGetName@0=crash", "nvmlDeviceGetUUID@1=exit", "nvmlInitWithFlags=999",
          "nvmlDeviceGetCount_v2=count:4294967295", "nvmlDeviceGetHandleByIndex_v2@0=999", "say=1")  # fmt: skip
FEW = FAULTS[:6]


def in_time(ran: Ran, seconds: float = NVML_SECONDS) -> Ran:
    assert ran.left == [], ran.said()
    assert ran.seconds < seconds + START_UP_SECONDS, ran.said()
    assert "Traceback" not in ran.stderr, ran.said()
    return ran


@pytest.fixture(params=["torch", "stand-in", "without torch"])
def python(request) -> str:
    makers = {"torch": lambda: sys.executable, "stand-in": with_stand_in, "without torch": without_torch}
    return makers[request.param]()


@pytest.fixture
def made(tmp_path: Path) -> str:
    return written(tmp_path, profile(fingerprint=ELSEWHERE))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_apply_runs_the_command(fault: str, made: str) -> None:
    """It fails open, whatever the driver does."""
    ran = in_time(Node(fault, python=without_torch()).gputune("apply", made, "--", "sh", "-c", "echo ran; exit 7"))
    assert (ran.code, ran.stdout) == (7, "ran\n"), ran.said()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FEW[1:4])
def test_apply_of_this_machine_s_own_profile_runs_the_command(fault: str, python: str, tmp_path: Path) -> None:
    ran = in_time(Node(fault, python=python).gputune("apply", "auto", "--", "echo", "ran", cwd=tmp_path))
    assert (ran.code, ran.stdout) == (0, "ran\n"), ran.said()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", FEW[:2])
def test_apply_prints_for_a_shell(fault: str, made: str) -> None:
    node = Node(fault, python=without_torch())
    for words in (["apply", "--ignore-fingerprint", made], ["apply", made], ["apply", "--dry-run", made, "--", "true"]):
        ran = in_time(node.gputune(*words))
        assert ran.code == 0, ran.said()
        assert "nvml" not in ran.stdout.lower()


@pytest.mark.parametrize("fault", FEW[2:4])
def test_strict_is_refused(fault: str, made: str) -> None:
    ran = in_time(Node(fault, python=without_torch()).gputune("apply", "--strict", made, "--", "echo", "ran"))
    assert (ran.code, ran.stdout) == (78, ""), ran.said()


def test_apply_asks_only_for_its_fingerprint(tmp_path: Path, made: str) -> None:
    calls = {call.partition("@")[0] for call in asked(without_torch(), tmp_path, ["apply", made, "--", "true"])}
    assert calls <= {
        "nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
        "nvmlDeviceGetName", "nvmlDeviceGetMigMode", "nvmlDeviceGetCudaComputeCapability",
        "nvmlSystemGetDriverVersion", "nvmlShutdown",
    }  # fmt: skip
    assert "nvmlDeviceGetName" in calls


@pytest.mark.parametrize("fault", ["nvmlDeviceGetTemperature@0=hang", "nvmlDeviceGetPowerUsage@1=crash"])
def test_apply_does_not_wait_for_what_it_does_not_ask(fault: str, made: str) -> None:
    healthy = Node(python=without_torch()).gputune("apply", made, "--", "true")
    ran = Node(fault, python=without_torch()).gputune("apply", made, "--", "true")
    assert (ran.code, ran.stderr) == (0, healthy.stderr)
    assert ran.seconds < NVML_SECONDS


@pytest.mark.parametrize("fault", FEW[:2])
def test_status(fault: str) -> None:
    ran = in_time(Node(fault).gputune("status", "--json"))
    assert ran.code == 0, ran.said()
    assert ran.answer["torch"]
    missing = in_time(Node(fault, python=without_torch()).gputune("status"))
    assert missing.code == 3


@pytest.mark.parametrize(
    "words",
    [
        ["docker"],
        ["kubernetes", "job", "--", "python", "train.py"],
        ["kubernetes", "daemonset"],
        ["kubernetes", "configmap", "--profile", "profile.yaml"],
        ["slurm", "sbatch", "--", "python", "train.py"],
        ["slurm", "task-prolog"],
        ["slurm", "health-check", "--drain"],
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_deploy_prints_what_it_prints_on_a_healthy_node(words: list[str], made: str, tmp_path: Path) -> None:
    healthy = Node(python=without_torch()).gputune("deploy", *words, cwd=tmp_path)
    ran = in_time(Node(FAULTS[0], python=without_torch()).gputune("deploy", *words, cwd=tmp_path))
    assert (healthy.code, ran.code) == (0, 0), ran.said()
    assert ran.stdout == healthy.stdout


def test_show_and_explain_ask_no_driver(made: str) -> None:
    node = Node(FAULTS[0], python=without_torch())
    for words in (["show", made], ["show", "--json", made], ["show", "--as-code", made], ["explain", "gpu_lost"]):
        ran = in_time(node.gputune(*words), 0)
        assert ran.code == 0, ran.said()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", [FEW[0], "nvmlDeviceGetTemperature@1=hang"])
def test_probe_writes_a_profile_with_gaps(fault: str, tmp_path: Path) -> None:
    """With a torch for the CPU. The bench processes ask NVML too, at each measurement."""
    words = ["probe", "--budget", "quick", "--device", "cpu", "--only", "matmul_peak", "-o", "profile.yaml", "--json"]
    ran = in_time(Node(fault).gputune(*words, cwd=tmp_path), NVML_SECONDS + PROBE_SECONDS)
    assert ran.code == 0, ran.said()
    gaps = {gap["fact"]: gap for gap in json.loads(ran.stdout)["gaps"]}
    assert {"no_answer", "killed"} & {gap["cause"] for gap in gaps.values()}, gaps
    assert (tmp_path / "profile.yaml").exists()


def test_probe_of_a_gpu_that_nothing_reaches_says_so(tmp_path: Path) -> None:
    """With a stand-in torch that can measure nothing."""
    words = ["probe", "--budget", "quick", "--device", "cuda", "--only", "matmul_peak", "-o", "profile.yaml"]
    ran = in_time(Node(FAULTS[0], python=with_stand_in()).gputune(*words, cwd=tmp_path), NVML_SECONDS + PROBE_SECONDS)
    assert ran.code in (2, 3), ran.said()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", ["nvmlInitWithFlags=hang", "nvmlDeviceGetName@0=deaf", "nvmlInitWithFlags=crash"])
def test_tune_of_a_command_without_steps_says_so(fault: str, python: str, tmp_path: Path) -> None:
    node = Node(fault, python=python)
    healthy = Node(python=python).gputune("tune", "--", "python", "-c", "pass", cwd=tmp_path)
    ran = in_time(node.gputune("tune", "--", "python", "-c", "pass", cwd=tmp_path), healthy.seconds + 2 * NVML_SECONDS)
    assert ran.code == healthy.code, ran.said()


HEALTH = {
    "nvmlInitWithFlags=hang": "Init", "nvmlDeviceGetCount_v2=hang": "Count", "nvmlDeviceGetName@1=deaf": "GPU 1",
    "nvmlDeviceGetHandleByIndex_v2@1=hang": "GPU 1", "nvmlDeviceGetHandleByIndex_v2@1=999": "GPU 1",
    "nvmlDeviceGetTemperature@1=crash": "GPU 1", "nvmlInitWithFlags=crash": "Init", "nvmlInitWithFlags=9": "NVML",
}  # fmt: skip
"""A fault, and what the report of the health check says of it."""


def node_state(folder: Path) -> str:
    """A PATH with a scontrol that knows an idle node and writes down what it is told, and with a silent logger."""
    (folder / "bin").mkdir()
    told = folder / "told"
    executable(
        folder / "bin" / "scontrol",
        f'#!/bin/sh\ncase $1 in show) echo "   State=IDLE ThreadsPerCore=1" ;; *) echo "$@" >> {told} ;; esac\n',
    )
    executable(folder / "bin" / "logger", "#!/bin/sh\n")
    return f"{folder / 'bin'}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", HEALTH)
def test_the_health_check_drains_the_node(fault: str, tmp_path: Path) -> None:
    path = node_state(tmp_path)
    script = health_check(without_torch(), drain=True).replace("export PATH=", f"export PATH={path}:")
    node = Node(fault, python=without_torch(), environ={"SLURMD_NODENAME": "n1"})
    ran = in_time(node.command("bash", "-c", script), NVML_SECONDS + 5)
    assert ran.code == 0, ran.said()
    assert HEALTH[fault] in ran.stderr, ran.said()
    assert "State=DRAIN" in (tmp_path / "told").read_text(), ran.said()


def test_the_health_check_leaves_a_healthy_node_alone(tmp_path: Path) -> None:
    path = node_state(tmp_path)
    script = health_check(with_stand_in(), drain=True).replace("export PATH=", f"export PATH={path}:")
    ran = in_time(Node(python=with_stand_in(), environ={"SLURMD_NODENAME": "n1"}).command("bash", "-c", script))
    assert (ran.code, ran.stderr, (tmp_path / "told").exists()) == (0, "", False)


def test_a_python_that_imports_gputune_is_not_stopped(tmp_path: Path) -> None:
    """`import gputune` in a user's program, which asks for the settings of this machine."""
    script = "import gputune; print(gputune.__version__)"
    ran = in_time(Node(FAULTS[0], python=without_torch()).command(without_torch(), "-c", script))
    assert ran.code == 0, ran.said()
