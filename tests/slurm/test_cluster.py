"""What `gputune deploy slurm` prints, given to a real Slurm of two nodes."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import stand_in
from making import gputune, profile

from gputune import benches
from gputune.host import Host
from gputune.profile import load, save
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = pytest.mark.slurm

GPUTUNE = [sys.executable, "-P", "-m", "gputune"]
DIGEST = [
    sys.executable, "-c",
    "import os; from gputune.runtime.environment import digest\n"
    "print(os.environ['SLURMD_NODENAME'], os.environ['SLURM_PROCID'], digest(os.environ), flush=True)",
]  # fmt: skip

WATCHED = """
import os, signal, sys, time
if sys.orig_argv[-1].endswith(".yaml") and "probe" in sys.orig_argv:
    with open(os.environ["PROBES"], "a") as file:
        file.write(os.environ["SLURMD_NODENAME"] + "\\n")
    if os.environ["SLURMD_NODENAME"] == os.environ.get("KILLED_ON"):
        while len(open(os.environ["PROBES"]).readlines()) < 2:  # srun would end the other before it has begun
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
"""
"""A sitecustomize that writes down where a probe starts, and ends it where it is told."""


def printed(*words: str) -> str:
    done = gputune("deploy", "slurm", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def submit(cluster, tmp_path: Path):
    """Submits a script from a folder of its own, and waits; its exit code, its output, the folder of profiles, and on
    which nodes a probe was started.
    """
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched" / "sitecustomize.py").write_text(WATCHED)
    probes = tmp_path / "probes"
    probes.touch()

    def submit(script: str, **variables: str):
        (tmp_path / "job.sh").write_text(script)
        env = {"PYTHONPATH": str(tmp_path / "watched"), "PROBES": str(probes), **variables}
        number, code = cluster.submitted(tmp_path / "job.sh", env)
        return code, (tmp_path / "out").read_text(), tmp_path / f"gputune-{number}", probes.read_text().split()

    return submit


class TestSbatch:
    def test_one_probe_on_each_node_and_all_ranks_report_the_same_digest(self, submit) -> None:
        """The real probe; then `gputune status` in each rank."""
        script = printed(
            "sbatch", "--nodes=2", "--tasks-per-node=2", "--cpus-per-task=1", "--", *GPUTUNE, "status", "--json"
        )
        code, out, profiles, probes = submit(script.replace("budget=standard", "budget=quick"))
        assert code == 0, out
        assert sorted(probes) == ["n1", "n2"]
        assert {path.name for path in profiles.iterdir()} == {
            "n1.yaml", "n1.report", "n1.log", "n2.yaml", "n2.report", "n2.log", "job.yaml",
        }  # fmt: skip
        assert load(profiles / "job.yaml").measurements
        digests = re.findall(r'"digest": "(\w+)"', out)
        assert len(digests) == 4
        assert len(set(digests)) == 1
        assert digests[0]

    def test_a_probe_that_is_killed_on_one_node_costs_the_job_nothing_but_the_profile(self, submit) -> None:
        task = f"{shlex.join(DIGEST)}; exit 37"
        script = printed("sbatch", "--nodes=2", "--tasks-per-node=2", "--", "sh", "-c", task)
        code, out, profiles, probes = submit(script, KILLED_ON="n2")
        assert code == 37
        assert sorted(probes) == ["n1", "n2"]
        assert "gputune: no profile was measured; the command runs without one" in out
        assert not (profiles / "job.yaml").exists()
        assert sorted(line for line in out.splitlines() if line.endswith(" None")) == [
            "n1 0 None", "n1 1 None", "n2 2 None", "n2 3 None",
        ]  # fmt: skip

    def test_gpus_that_do_not_answer_leave_the_job_its_grant(self, submit) -> None:
        """Slurm grants them all the same: four tasks, each with both of its node's."""
        task = 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $SLURM_CPUS_PER_TASK"'
        script = printed("sbatch", "--nodes=2", "--gpus-per-node=2", "--cpus-per-task=2", "--", "sh", "-c", task)
        code, out, profiles, _ = submit(script)
        assert code == 0
        assert "--device all" in out  # the probe's reason
        assert sorted(out.splitlines()[-4:]) == ["n1 0,1 2", "n1 0,1 2", "n2 0,1 2", "n2 0,1 2"]
        assert not list(profiles.glob("*.yaml"))

    def test_without_gputune_on_the_nodes_it_is_still_the_job(self, submit) -> None:
        script = printed("sbatch", "--", "sh", "-c", "echo ran; exit 5")
        code, out, _, _ = submit(script.replace(sys.executable.replace("python", "gputune"), "/no/such"))
        assert (code, "ran" in out.splitlines(), "/no/such" in out) == (5, True, True)


class TestTaskProlog:
    SHOW = [sys.executable, "-c", "import torch; print(torch.get_float32_matmul_precision())"]

    @pytest.fixture
    def with_profile(self, cluster, tmp_path: Path):
        """Slurm with a TaskProlog for a profile that makes matmuls TF32; the profile's path."""
        path = tmp_path / "profile.yaml"
        save(profile({"matmul_precision": "tf32"}, fingerprint=local_fingerprint(Host())), path)
        _program(tmp_path / "prolog", printed("task-prolog", "--profile", str(path)))
        cluster.configure(TaskProlog=tmp_path / "prolog")
        return path

    def test_a_plain_python_gets_its_flags(self, cluster, with_profile: Path) -> None:
        assert cluster.asked("srun", "-N2", "-n2", *self.SHOW).split() == ["high", "high"]

    def test_a_job_may_stay_as_it_is(self, cluster, with_profile: Path) -> None:
        told = cluster.asked("srun", "-n1", "env", env={"GPUTUNE_DISABLE": "1"})
        assert "GPUTUNE_APPLY" not in told

    @pytest.mark.parametrize("content", [None, "settings: [no profile"])
    def test_where_there_is_no_profile_it_does_nothing(self, cluster, with_profile: Path, content: str | None) -> None:
        with_profile.unlink()
        if content:
            with_profile.write_text(content)
        done = cluster.ran("srun", "-n1", "sh", "-c", "env; exit 37")
        assert (done.returncode, "GPUTUNE_APPLY" in done.stdout) == (37, False)
        assert "gputune" not in done.stderr


class TestHealthCheck:
    """The fault is real: a GPU's device file without a driver, which only n1's health check sees."""

    AS_SLURMD = """#!/bin/bash
echo run >> {folder}/runs.$SLURMD_NODENAME
exec 9>{folder}/lock.$SLURMD_NODENAME && flock -n 9 || exit 0  # slurmd does not wait for the one before
as_slurmd=(env -i SLURM_CONF={conf} "SLURMD_NODENAME=$SLURMD_NODENAME" {folder}/check)
if [ "$SLURMD_NODENAME" != n1 ] || [ ! -e {folder}/broken ]; then exec "${{as_slurmd[@]}}"; fi
exec unshare -m bash -c '
  mount -t tmpfs none {folder}/dev &&
  for name in null zero urandom random tty; do
    touch {folder}/dev/$name && mount --bind /dev/$name {folder}/dev/$name || exit
  done &&
  mknod {folder}/dev/nvidia0 c 195 0 && mount --move {folder}/dev /dev && exec "$@"' broken "${{as_slurmd[@]}}"
"""
    """With the one variable that slurmd sets, and the one that says where this Slurm is."""

    @pytest.fixture
    def checking(self, cluster, tmp_path: Path):
        """Prints the file; the path of a program that runs it."""
        (tmp_path / "dev").mkdir()

        def checking(*options: str) -> str:
            _program(tmp_path / "check", printed("health-check", *options))
            text = self.AS_SLURMD.format(conf=cluster.folder / "slurm.conf", folder=tmp_path)
            return _program(tmp_path / "as-slurmd", text)

        return checking

    def by_hand(self, cluster, program: str, node: str = "n1") -> str:
        """As slurmd runs it: with nothing but the node's name. What it said, line by line."""
        done = subprocess.run([program], env={"SLURMD_NODENAME": node}, capture_output=True, text=True, check=True)
        assert done.stdout == ""
        return done.stderr

    def test_it_reports_and_leaves_the_node_alone(self, cluster, checking, tmp_path: Path) -> None:
        program = checking()
        assert self.by_hand(cluster, program) == ""
        (tmp_path / "broken").touch()
        said = self.by_hand(cluster, program)
        assert "gputune: n1: error: gpu_absent: a GPU was requested (/dev/nvidia0)" in said
        assert cluster.states() == ["idle", "idle"]

    def test_told_to_slurm_drains_the_node_and_puts_it_back(self, cluster, checking, tmp_path: Path) -> None:
        (tmp_path / "broken").touch()
        cluster.asked("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a broken fan")
        cluster.configure(HealthCheckProgram=checking("--drain"), HealthCheckInterval=2)
        cluster.await_states("drained", "drained")
        assert cluster.asked("sinfo", "-h", "-n", "n1", "-o", "%E").startswith(
            "gputune: gpu_absent: a GPU was requested"
        )
        (tmp_path / "broken").unlink()  # and with it all that was seen of the GPU: that is no health
        before = self.runs(tmp_path)
        cluster.awaited(lambda: self.runs(tmp_path) > before + 2)
        cluster.await_states("drained", "drained")
        self.answer(tmp_path, "OK")
        cluster.await_states("idle", "drained")
        assert cluster.asked("sinfo", "-h", "-n", "n2", "-o", "%E") == "a broken fan\n"

    def runs(self, folder: Path) -> int:
        return min((folder / f"runs.{node}").read_text().count("run") for node in ("n1", "n2"))

    def answer(self, folder: Path, severity: str) -> None:
        """From now on gputune's answer about a GPU is made up."""
        finding = json.dumps({
            "check": "ecc_errors", "severity": severity, "subject": "GPU 3",
            "message": "7 `errors` of $(two) kinds\x07",
        })  # fmt: skip
        text = self.ANSWERS.format(findings=finding.replace("\\", "\\\\"), python=sys.executable)
        answers = _program(folder / "answers", text)
        script = (folder / "check").read_text()
        _program(folder / "check", script.replace(f"python={sys.executable}", f"python={answers}"))

    def test_a_gputune_that_is_broken_is_no_fault_of_the_node(self, cluster, checking, tmp_path: Path) -> None:
        program = checking("--drain")
        script = (tmp_path / "check").read_text()
        _program(tmp_path / "check", script.replace(f"python={sys.executable}", "python=/no/such/python"))
        assert self.by_hand(cluster, program).splitlines()[-1] == "gputune: n1: gputune check gave no answer"
        assert cluster.states() == ["idle", "idle"]

    ANSWERS = """#!/bin/sh
case $3 in -m) echo '{{"findings": [{findings}]}}' ;; *) exec {python} "$@" ;; esac
"""

    @pytest.mark.parametrize(
        ("before", "severity", "after"),
        [
            ("idle", "WARNING", "idle"),
            ("idle", "ERROR", "drained gputune: ecc_errors: GPU 3: 7 `errors` of $(two) kinds?"),
            ("drained gputune: ecc_errors: 7 errors", "OK", "idle"),
            ("drained gputune: ecc_errors: 7 errors", "WARNING", "idle"),
            ("drained gputune: ecc_errors: 7 errors", "UNKNOWN", "drained gputune: ecc_errors: 7 errors"),
            ("drained gputune: ecc_errors: 7 errors", "ERROR", "drained gputune: ecc_errors: 7 errors"),
            ("drained not by gputune: 1", "OK", "drained not by gputune: 1"),
            ("drained a broken fan", "ERROR", "drained a broken fan"),
            ("down a broken fan", "ERROR", "down a broken fan"),
            ("down gputune: ecc_errors: 7 errors", "OK", "down gputune: ecc_errors: 7 errors"),
        ],
    )
    def test_what_was_found_and_whose_the_reason_is_decide(
        self, cluster, checking, tmp_path: Path, *, before: str, severity: str, after: str
    ) -> None:
        """gputune's answer is made up here; the node's state is Slurm's."""
        program = checking("--drain")
        self.answer(tmp_path, severity)
        state, _, reason = before.partition(" ")
        if reason:
            state = state.removesuffix("ed").upper()
            cluster.asked("scontrol", "update", "NodeName=n1", f"State={state}", f"Reason={reason}")
        self.by_hand(cluster, program)
        expected = [*after.split(" ", 1), "none"][:2]
        cluster.awaited(lambda: self.state_of("n1", cluster) == expected, seconds=5)

    def state_of(self, node: str, cluster) -> list[str]:
        return cluster.asked("sinfo", "-h", "-n", node, "-o", "%T|%E").strip().split("|")


class TestRanks:
    BENCH = """
name = __name__.rpartition(".")[2]
with open(os.environ["PROBES"], "a") as file:
    file.write(name + "\\n")
if os.environ.get("KILLED") and not os.path.exists(os.environ["KILLED"]):
    open(os.environ["KILLED"], "w").close()
    with open(f"/proc/{os.getppid()}/stat") as keeper:
        os.kill(int(keeper.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
yield told(name)
"""

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("killed", [False, True])
    def test_eight_that_start_at_once_probe_once_and_apply_the_same(
        self, cluster, tmp_path: Path, killed: bool
    ) -> None:
        """The benches, which would take a minute, answer at once; all else is the real probe. Where the rank that
        probes is killed, another one does.
        """
        env = {
            "GPUTUNE_PROBE": "missing",
            "PROBES": str(tmp_path / "probes"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "PYTHONPATH": stand_in.benches(tmp_path, **dict.fromkeys(benches.names(), self.BENCH)),
            **({"KILLED": str(tmp_path / "killed")} if killed else {}),
        }
        done = cluster.ran("srun", "-N1", "-n8", *GPUTUNE, "apply", "auto", "--", *DIGEST, env=env)
        assert done.returncode == (137 if killed else 0)
        rows = [line.split() for line in done.stdout.splitlines()]
        assert len({rank for _, rank, _ in rows}) == (7 if killed else 8)
        [digest] = {digest for *_, digest in rows}
        assert digest != "None"
        first, *others = (tmp_path / "probes").read_text().split()
        assert others.count(first) == (1 if killed else 0)
        assert len(others) == len(set(others))

    def test_check_reads_what_slurm_granted(self, cluster, tmp_path: Path) -> None:
        """One of n2's two GPUs to each of two tasks."""
        words = ["srun", "-w", "n2", "-N1", "-n2", "--gpus-per-task=1", "--cpus-per-task=2", "sh", "-c"]
        check = shlex.join([*GPUTUNE, "check", "--json", "--fail-on", "never"])
        cluster.asked(*words, f"{check} > {shlex.quote(str(tmp_path))}/$CUDA_VISIBLE_DEVICES")
        told = {one.name: json.loads(one.read_text()) for one in tmp_path.iterdir()}
        assert sorted(told) == ["0", "1"]
        for gpu, answer in told.items():
            assert answer["facts"]["scheduler"] | {"job": "its own"} == {
                "name": "slurm", "job": "its own", "cpus_per_task": 2, "cpus_on_node": 4, "srun_cpus_per_task": None,
                "step": True, "gpus": gpu, "local_ranks": 2, "torchrun": False, "gpu_sharing": None,
                "gpu_count": 1, "gpus_bound": False,
            }  # fmt: skip
            [absent] = [one for one in answer["findings"] if one["check"] == "gpu_absent"]
            assert absent["message"].startswith(f"a GPU was requested (slurm granted GPU {gpu})")


def _program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)
