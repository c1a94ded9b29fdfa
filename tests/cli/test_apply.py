"""`gputune apply` as a user runs it."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import making
import pytest
from forked import gputune, refusal
from making import CHOSEN, ELSEWHERE, H200, command, environ, profile, written

from gputune import knobs
from gputune.host import Host
from gputune.profile import Fingerprint
from gputune.runtime.environment import SHIM
from gputune.runtime.local_fingerprint import local_fingerprint

SHOW = "import json, os; print(json.dumps([os.environ.get('OMP_NUM_THREADS'), os.environ.get('GPUTUNE_APPLY')]))"
PROCESS = {name: value for name, value in CHOSEN.items() if knobs.load(name).PHASE == "process"}


def payload(omp_threads: int, **more: object) -> dict[str, object]:
    return {"settings": {**PROCESS, "expandable_segments": True, "omp_threads": omp_threads}, **more}


@pytest.fixture(scope="module")
def here() -> Fingerprint:
    return local_fingerprint(Host(environ=environ()))


@pytest.fixture
def path(tmp_path: Path, here: Fingerprint) -> str:
    return written(tmp_path, profile(CHOSEN | {"omp_threads": 1}, here))


@pytest.fixture
def foreign(tmp_path: Path) -> str:
    return written(tmp_path, profile(fingerprint=ELSEWHERE))


class TestCommand:
    @pytest.mark.slow
    def test_it_gets_the_environment_and_nothing_is_said(self, path: str, here: Fingerprint) -> None:
        done = gputune("apply", path, "--", sys.executable, "-c", SHOW)
        assert (done.returncode, done.stderr) == (0, "")
        threads, handed = json.loads(done.stdout)
        assert (threads, json.loads(handed)) == ("1", payload(omp_threads=1, torch=here.torch))

    @pytest.mark.slow
    def test_the_two_dashes_may_be_left_out_and_only_the_first_two_are_ours(self, path: str) -> None:
        assert gputune("apply", path, "--", "echo", "--", "--help").stdout == "-- --help\n"
        assert gputune("apply", path, "echo", "-n", "--strict", "--").stdout == "--strict --"

    @pytest.mark.slow
    def test_a_real_torch_below_it_is_set(self, path: str) -> None:
        values = "torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark, torch.get_num_threads()"
        done = gputune("apply", path, "--", sys.executable, "-c", f"import torch; print({values})")
        assert done.stdout == "high True 1\n"

    @pytest.mark.parametrize("code", [0, 1, 2, 37, 78])
    def test_the_exit_code_is_the_commands(self, path: str, code: int) -> None:
        assert gputune("apply", path, "--", "sh", "-c", f"exit {code}").returncode == code

    @pytest.mark.slow
    def test_a_signal_is_the_commands(self, path: str) -> None:
        assert gputune("apply", path, "--", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
        shell = command(["sh", "-c", f"{sys.executable} -m gputune apply {path} -- sh -c 'kill -TERM $$'; exit $?"])
        assert shell.returncode == 143

    @pytest.mark.slow
    def test_no_signal_stays_ignored(self, path: str) -> None:
        done = gputune("apply", path, "--", "grep", "SigIgn", "/proc/self/status")
        assert done.stdout.split() == ["SigIgn:", "0" * 16]

    @pytest.mark.slow
    def test_the_streams_and_open_files_are_the_commands(self, path: str) -> None:
        done = making.gputune("apply", path, "--", "sh", "-c", "cat; echo err >&2", input="in")
        assert (done.stdout, done.stderr) == ("in", "err\n")

    @pytest.mark.slow
    def test_no_process_is_left_in_between(self, path: str) -> None:
        arguments = [sys.executable, "-m", "gputune", "apply", path, "--", "sh", "-c", "echo $$ $PPID"]
        with subprocess.Popen(arguments, env=environ(), stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.read().split() == [str(child.pid), str(os.getpid())]

    @pytest.mark.slow
    def test_nested_the_inner_profile_holds(self, path: str, here: Fingerprint, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        inner = written(tmp_path / "in", profile({"cudnn_benchmark": True}, fingerprint=here))
        code = SHOW + "; print(os.environ['PYTHONPATH'])"
        words = [sys.executable, "-m", "gputune", "apply", inner, "--", sys.executable, "-c", code]
        out = gputune("apply", path, "--", *words).stdout.splitlines()
        threads, handed = json.loads(out[0])
        assert (threads, json.loads(handed)) == ("1", {"settings": {"cudnn_benchmark": True}, "torch": here.torch})
        assert out[1].split(":").count(SHIM) == 1

    def test_gputune_disable_leaves_the_command_alone(self, path: str) -> None:
        done = gputune("apply", path, "--", sys.executable, "-c", SHOW, env=environ(GPUTUNE_DISABLE="1"))
        assert json.loads(done.stdout) == [None, None]


class TestElsewhere:
    @pytest.mark.slow
    def test_what_differs_is_one_line_and_the_command_runs(self, foreign: str, here: Fingerprint) -> None:
        done = gputune("apply", foreign, "--", sys.executable, "-c", SHOW)
        assert (done.returncode, json.loads(done.stdout)) == (0, [None, None])
        assert done.stderr.startswith(
            f"gputune: applied 0 settings, skipped {len(CHOSEN)} measured on another machine "
            "(device (NVIDIA A100-SXM4-80GB there, "
        )
        assert done.stderr.endswith("); --ignore-fingerprint applies them\n")
        assert done.stderr.count("\n") == 1

    @pytest.mark.slow
    def test_ignore_fingerprint(self, foreign: str) -> None:
        done = gputune("apply", "--ignore-fingerprint", foreign, "--", sys.executable, "-c", SHOW)
        threads, handed = json.loads(done.stdout)
        assert (threads, json.loads(handed)) == ("3", payload(omp_threads=3))
        assert done.stderr.startswith("gputune: FP32 matmul runs in TF32; --numerics rounding avoids it")

    @pytest.mark.slow
    def test_one_setting_of_many(self, tmp_path: Path, here: Fingerprint) -> None:
        path = written(tmp_path, profile({"cudnn_benchmark": True, "omp_threads": 3}, replace(here, torch="1.0")))
        done = gputune("apply", path, "--", sys.executable, "-c", SHOW)
        assert json.loads(done.stdout) == ["3", '{"settings":{"omp_threads":3}}']
        difference = f"torch (1.0 there, {here.torch} here)"
        assert done.stderr == (
            f"gputune: applied 1 settings, skipped 1 measured on another machine ({difference}); "
            "--ignore-fingerprint applies them\n"
        )

    @pytest.mark.slow
    def test_strict_refuses(self, foreign: str) -> None:
        for more in ([], ["--", "echo", "ran"]):
            fault = refusal("apply", "--strict", foreign, *more, code=78)
            assert "measured on another machine (device (NVIDIA A100-SXM4-80GB there" in fault

    def test_strict_and_ignore_fingerprint_run(self, foreign: str) -> None:
        assert gputune("apply", "--strict", "--ignore-fingerprint", foreign, "--", "echo", "ran").stdout == "ran\n"

    @pytest.mark.slow
    def test_a_fingerprint_cannot_steer_the_terminal(self, tmp_path: Path) -> None:
        path = written(tmp_path, profile({"amp_dtype": "float16"}, replace(H200, gpu="\x1b[31mred\nline")))
        for options in ([], ["--strict"]):
            done = gputune("apply", *options, path, "--", "true")
            assert "\x1b" not in done.stderr
            assert done.stderr.count("\n") == 1


class TestBroken:
    @pytest.fixture
    def broken(self, tmp_path: Path) -> str:
        (tmp_path / "p.yaml").write_text("schema: 1\nsettings: {no_such: {}}\n")
        return str(tmp_path / "p.yaml")

    @pytest.mark.parametrize("kind", ["missing", "folder", "empty", "invalid", "binary"])
    def test_the_command_runs_unchanged_after_one_line(self, broken: str, kind: str, tmp_path: Path) -> None:
        contents = {"empty": b"", "binary": bytes(range(256))}
        if kind in contents:
            Path(broken).write_bytes(contents[kind])
        broken = {"missing": f"{broken}.no", "folder": str(tmp_path)}.get(kind, broken)
        code = "import json, os; print(json.dumps(dict(os.environ)))"
        done = gputune("apply", broken, "--", sys.executable, "-c", code)
        assert done.returncode == 0
        assert json.loads(done.stdout) == environ()
        assert done.stderr.startswith(f"gputune: {broken}: ")
        assert done.stderr.endswith(f"; running {sys.executable} unchanged\n")
        assert done.stderr.count("\n") == 1

    def test_strict_refuses_before_the_command(self, broken: str) -> None:
        assert broken in refusal("apply", "--strict", broken, "--", "echo", "ran", code=78)

    def test_without_a_command_it_is_2_and_prints_nothing_to_evaluate(self, broken: str) -> None:
        assert refusal("apply", broken).startswith(f"gputune: {broken}: ")

    @pytest.mark.slow
    def test_stderr_may_be_full(self, broken: str) -> None:
        words = ["sh", "-c", 'exec "$0" -m gputune apply "$1" -- echo ran 2>/dev/full', sys.executable, broken]
        assert command(words).stdout == "ran\n"


class TestBare:
    @pytest.mark.slow
    def test_a_shell_evaluates_what_is_on_stdout(self, path: str, here: Fingerprint) -> None:
        script = f'set -eu; eval "$("$0" -m gputune apply {path} 2>/dev/null)"; exec "$0" -c "{SHOW}"'
        for shell in ("sh", "bash"):
            done = command([shell, "-c", script, sys.executable])
            threads, handed = json.loads(done.stdout)
            assert (done.stderr, threads, json.loads(handed)) == ("", "1", payload(omp_threads=1, torch=here.torch))

    @pytest.mark.slow
    def test_the_table_and_the_two_ways_are_on_stderr(self, path: str) -> None:
        done = gputune("apply", path)
        assert done.returncode == 0
        assert all(line.split()[0] in ("export", "case") for line in done.stdout.splitlines())
        for name in CHOSEN:
            assert name in done.stderr
        first, second = done.stderr.splitlines()[-2:]
        assert first.endswith(f'eval "$(gputune apply {path})"')
        assert second.endswith(f"gputune apply {path} -- python train.py")


class TestUsage:
    @pytest.mark.slow
    def test_an_option_after_the_profile_is_not_taken_for_a_command(self, path: str) -> None:
        assert "options come before it" in refusal("apply", path, "--strict")

    def test_two_dashes_and_no_command(self, path: str) -> None:
        assert "no command follows --" in refusal("apply", path, "--")


class TestNumerics:
    @pytest.mark.slow
    def test_what_is_left_out_is_one_line(self, path: str) -> None:
        done = gputune("apply", "--numerics", "rounding", path, "--", sys.executable, "-c", SHOW)
        assert "matmul_precision" not in json.loads(json.loads(done.stdout)[1])["settings"]
        assert done.stderr == "gputune: left out by numerics: amp_dtype, matmul_precision\n"

    def test_the_table_says_why(self, path: str) -> None:
        text = " ".join(gputune("apply", "--numerics", "exact", path, env=environ(COLUMNS="200")).stderr.split())
        assert "beyond the numerics limit exact: its effect on results is tf32" in text

    def test_a_level_of_the_environment_that_is_none_costs_no_command(self, path: str) -> None:
        done = gputune("apply", path, "--", "echo", "ran", env=environ(GPUTUNE_NUMERICS="exakt"))
        assert (done.returncode, done.stdout) == (0, "ran\n")
        assert done.stderr.startswith("gputune: GPUTUNE_NUMERICS: 'exakt' is not a level")


class TestEmit:
    @pytest.mark.slow
    def test_a_task_prolog_prints_what_slurm_sets(self, path: str, here: Fingerprint) -> None:
        done = gputune("apply", "--emit", "slurm-taskprolog", path)
        assert (done.returncode, done.stderr) == (0, "")
        lines = dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines())
        assert lines["OMP_NUM_THREADS"] == "1"
        assert json.loads(lines["GPUTUNE_APPLY"]) == payload(omp_threads=1, torch=here.torch)
        assert lines["PYTHONPATH"].split(":")[0] == SHIM

    @pytest.mark.parametrize(
        ("words", "fault"),
        [
            (["--emit", "k8s"], "--emit k8s: there is no such form; choose from shell, slurm-taskprolog"),
            (["--emit", "slurm-taskprolog", "PATH", "--", "true"], "--emit slurm-taskprolog: prints, and does not run"),
        ],
    )
    def test_what_does_not_go_together(self, path: str, words: list[str], fault: str) -> None:
        words = [path if word == "PATH" else word for word in words]
        assert refusal("apply", *words, *([] if path in words else [path])).startswith(f"gputune: {fault}")


def test_a_command_that_keeps_the_shim_out_is_said(path: str) -> None:
    done = gputune("apply", path, "--", sys.executable, "-I", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.endswith(
        "-I ignores PYTHONPATH, so torch's flags are set only where gputune install-hook was run for it\n"
    )
    assert done.stderr.count("\n") == 1
