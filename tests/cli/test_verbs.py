"""The verbs as a user types them: what they print, where, and with which exit code."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import making
import psutil
import pytest
import stand_in
from forked import gputune, refusal
from making import before_others, command, environ, executable, on_a_full_disk, python, serving, until

from gputune import benches, checks, knobs, probing
from gputune.cli.probe import probe
from gputune.profile import dump, load, parse
from gputune.report.json import CheckAnswer
from gputune.strict_types import convert

PROFILE = str(Path(__file__).parents[2] / "profiles" / "nvidia-h200.yaml")


@pytest.fixture(scope="module")
def stood_in(tmp_path_factory):
    """An environment for what is not about torch; in it `--only precision` has measured at once."""
    folder = tmp_path_factory.mktemp("stood_in")
    stand_in.torch(folder)
    return environ(PYTHONPATH=stand_in.benches(folder, precision="yield told('precision')"))


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    return folder, making.gputune(
        "probe", "--budget", "quick", "--device", "cpu", "--only", "precision", "--json", "-o", "p.yaml", cwd=folder
    )


@pytest.mark.slow
class TestProbe:
    def test_it_writes_the_profile_and_prints_it_as_json(self, probed):
        folder, result = probed
        assert result.returncode == 0
        assert json.loads(result.stdout)["created"] == load(folder / "p.yaml").created

    def test_beside_the_profile_on_stdout_charts_and_answer_are_on_stderr(self, probed):
        _, result = probed
        assert "gputune: [1/1] precision" in result.stderr
        assert "Matmul by dtype" in result.stderr
        assert "\nwritten to p.yaml\nnext:\n    gputune probe " in result.stderr

    def test_without_it_they_are_on_stdout_and_progress_on_stderr(self, stood_in, tmp_path):
        words = ["--budget", "quick", "--device", "cpu", "--only", "precision", "-o", "p.yaml"]
        result = making.gputune("probe", *words, env=stood_in, cwd=tmp_path)
        assert result.returncode == 0
        assert "precision" in result.stderr
        assert "torch  2.13.0" in result.stdout
        assert "\nwritten to p.yaml\nnext:\n" in result.stdout

    @pytest.mark.parametrize(
        ("options", "command"),
        [
            ({}, "gputune probe --only dataloader,cpu_threads"),
            (
                {"device": "cpu", "output": Path("my node.yaml")},
                "gputune probe --only dataloader,cpu_threads --device cpu -o 'my node.yaml'",
            ),
            ({"budget": "thorough", "fresh": True}, "--only dataloader,cpu_threads --budget thorough --fresh"),
            ({"only": "", "as_json": True}, "gputune probe --json"),
            ({"only": "", "device": "all", "output": Path("a.yaml")}, "gputune probe --device all -o a.yaml"),
        ],
    )
    def test_what_comes_next_is_to_measure_what_is_provisional(self, monkeypatch, tmp_path, capsys, options, command):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "200")  # a command and its remark on one line
        made = making.profile()
        waiting = {"omp_threads": ("cpu_threads",), "dataloader_workers": ("dataloader",)}
        settings = {
            name: replace(choice, provisional=True, evidence=waiting[name]) if name in waiting else choice
            for name, choice in made.settings.items()
        }
        monkeypatch.setattr(probing, "probe", lambda request, **more: replace(made, settings=settings))
        probe(**{"only": "precision"} | options)
        told = capsys.readouterr()
        lines = (told.err if options.get("as_json") else told.out).splitlines()
        assert "provisional: dataloader_workers, omp_threads" in lines
        offered, remark = lines[lines.index("next:") + 1].split("  # ")
        assert offered.strip().endswith(command)
        assert remark == "once this machine is idle"

    def test_what_completes_the_cached_profile_replaces_it_and_a_part_of_it_does_not(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)

        def probed(created, *benches, only=""):
            rows = tuple(making.row(bench, "throughput", 1.0) for bench in benches)
            made = replace(making.profile(measurements=rows), created=created)
            monkeypatch.setattr(probing, "probe", lambda request, **more: made)
            probe(only=only)
            return [load(path).created for path in (tmp_path / "gputune").glob("*.yaml")]

        assert probed("2026-11-20T12:00:00Z", "conv", only="conv") == []
        assert probed("2026-11-21T12:00:00Z", "precision", "conv") == ["2026-11-21T12:00:00Z"]
        assert probed("2026-11-22T12:00:00Z", "precision", "conv", only="conv") == ["2026-11-22T12:00:00Z"]
        assert probed("2026-11-23T12:00:00Z", "conv", only="conv") == ["2026-11-22T12:00:00Z"]

    def test_nothing_but_the_profile_is_left_in_the_folder(self, probed):
        folder, _ = probed
        assert [path.name for path in folder.iterdir()] == ["p.yaml"]

    def test_a_dash_is_stdout(self, stood_in, tmp_path):
        words = ["--budget", "quick", "--device", "cpu", "--only", "precision", "-o", "-"]
        result = gputune("probe", *words, env=stood_in, cwd=tmp_path)
        assert parse(result.stdout.encode()).settings
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            (["--device", "cuda:99"], 3, "--device cuda:99: torch sees"),
            (["--device", "tpu"], 2, "choose from auto, cpu, cuda, cuda:N"),
            (["--budget", "huge"], 2, "choose from quick, standard, thorough"),
            (["--only", "x"], 2, "there is no such bench"),
            (["-o", "nowhere/p.yaml"], 2, "mkdir -p"),
            (["-o", "."], 2, "is a directory"),
            (["-o", "/dev/null"], 2, "is not a regular file"),
            (["-o", "/proc/p.yaml"], 2, "cannot be written to"),
            (["-o", "n" * 300], 2, "name too long"),
            (["--nonsense"], 2, "no such option: --nonsense"),
            (["--batch-size", "8"], 2, "--batch-size 8: says how --dataset is loaded; add --dataset FILE.py:CALLABLE"),
            (["--step-ms", "2.5"], 2, "--step-ms 2.5: says how --dataset is loaded; add --dataset FILE.py:CALLABLE"),
            (["--dataset", "no.py:made"], 2, "--dataset no.py:made: there is no file no.py"),
            (["--dataset", "train.py:2x"], 2, "--dataset train.py:2x: names no callable"),
            (["--dataset", "train.py:made()"], 2, "--dataset train.py:made(): names no callable"),
            (["--dataset", "a.py:b", "--batch-size", "0"], 2, "--batch-size"),
            (["--dataset", "a.py:b", "--step-ms", "0"], 2, "--step-ms"),
        ],
    )
    def test_a_refusal_is_one_line(self, stood_in, options, code, words, tmp_path):
        assert words in refusal("probe", *options, code=code, env=stood_in, cwd=tmp_path)

    def test_a_full_disk_keeps_the_old_file_and_loses_nothing(self, stood_in, tmp_path):
        words = "probe --budget quick --device cpu --only precision -o p.yaml"
        old = dump(making.profile({})).strip()
        result = on_a_full_disk(tmp_path, "p.yaml", words, stood_in, old)
        assert result.returncode == 3
        assert "No space left on device" in result.stderr.splitlines()[-1]
        assert "Traceback" not in result.stderr
        printed, rest = result.stdout.rsplit("filler\n", 1)
        assert rest == f"p.yaml\n{old}\n"
        assert parse(printed.encode()).settings["amp_dtype"].reason

    def test_ctrl_c_is_one_line_and_leaves_no_process_and_no_file(self, tmp_path):
        begun, folder = tmp_path / "begun", tmp_path / "folder"
        folder.mkdir()
        stand_in.torch(tmp_path)
        env = environ(
            PYTHONPATH=stand_in.benches(tmp_path, precision=f"open({str(begun)!r}, 'w'); time.sleep(600); yield")
        )
        words = [sys.executable, "-m", "gputune", "probe", "--device", "cpu", "-o", "p.yaml"]
        child = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True, env=env)
        assert "precision" in child.stderr.readline()
        until(begun.exists)
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()
        assert child.wait(10) == 130
        assert said.splitlines()[-1] == "gputune: interrupted; nothing was written"
        assert "Traceback" not in said
        assert not list(folder.iterdir())
        until(lambda: not serving(str(child.pid)), seconds=5)


@pytest.mark.timed
def test_without_torch_check_answers_within_two_seconds(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    for _ in range(3):  # others may use the CPUs too
        started = time.monotonic()
        result = making.gputune("check", env=environ(PYTHONPATH=before_others(tmp_path)))
        took = time.monotonic() - started
        assert "torch is not installed" in result.stdout
        assert (result.returncode, result.stderr) == (0, "")
        if took < 2:
            break
    assert took < 2, took


@pytest.fixture(scope="module")
def checked():
    return making.gputune("check", "--json")


@pytest.mark.slow
class TestCheck:
    def test_it_answers_in_json(self, checked):
        answer = json.loads(checked.stdout)
        assert {finding["check"] for finding in answer["findings"]} == set(checks.names())
        assert checked.returncode in (0, 1)
        assert answer["summary"]["exit_code"] == checked.returncode
        assert convert(CheckAnswer, answer).facts.gpus is not None

    @pytest.mark.parametrize(
        ("variables", "words", "code"),
        [
            ({"NVIDIA_VISIBLE_DEVICES": "all"}, ["gpu_absent"], 1),
            ({"NVIDIA_VISIBLE_DEVICES": "all"}, ["gpu_absent", "--fail-on", "never"], 0),
            ({}, ["gpu_absent", "--require-gpu"], 1),
            ({"CUDA_LAUNCH_BLOCKING": "1"}, ["launch_blocking"], 0),
            ({"CUDA_LAUNCH_BLOCKING": "1"}, ["launch_blocking", "--fail-on", "warning"], 1),
        ],
    )
    def test_the_exit_code_follows_the_worst_finding(self, stood_in, variables, words, code):
        if "gpu_absent" in words and Path("/dev/nvidia0").exists():
            pytest.skip("there is a GPU here")
        result = gputune("check", "--only", *words, env=stood_in | variables)
        assert result.returncode == code
        assert ("--require-gpu" in result.stdout) == ("--require-gpu" in words)

    @pytest.mark.parametrize(
        ("words", "asked"),
        [
            (["--only", "shm_size, numa,gpu_mix", "--skip", "numa"], {"shm_size", "gpu_mix"}),
            (["--only", "shm_size", "--only", "numa"], {"shm_size", "numa"}),
        ],
    )
    def test_only_and_skip_choose_the_checks(self, stood_in, words, asked):
        answer = json.loads(gputune("check", "--json", *words, env=stood_in).stdout)
        assert {finding["check"] for finding in answer["findings"]} == asked

    @pytest.mark.parametrize(
        ("number", "code", "said"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
    )
    def test_a_signal_leaves_no_child_and_says_that_nothing_was_written(self, tmp_path, number, code, said):
        slow = executable(tmp_path / "python", "#!/bin/sh\nexec sleep 61.25\n")
        words = [sys.executable, "-m", "gputune", "check", "--python", str(slow)]
        child = subprocess.Popen(words, env=environ(), stderr=subprocess.PIPE, text=True)
        until(lambda: sleeping("61.25"))
        child.send_signal(number)
        assert child.communicate(timeout=10)[1].endswith(f"gputune: {said}; nothing was written\n")
        assert child.returncode == code
        assert not sleeping("61.25")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--fail-on", "all"], "choose from error, warning, unknown, never"),
            (["--only", "shm_sice"], "did you mean shm_size?"),
            (["--skip", "nonsense"], "'gputune explain' lists them"),
            (["--only", ","], "leave no check to run"),
            (["--only", "numa", "--skip", "numa"], "leave no check to run"),
            (["--only", "NUMA"], "did you mean numa?"),
            (["--python", "/no/such/python"], "no executable has that name"),
            (["--python", "/bin/true"], "ended without an answer"),
            (["--python", "/etc/passwd"], "no executable has that name"),
        ],
    )
    def test_a_refusal_is_one_line(self, options, words):
        assert words in refusal("check", *options)

    def test_it_looks_at_the_torch_of_another_python(self, tmp_path):
        (tmp_path / "torch.py").write_text("__version__ = '1.0'\n")
        script = f'#!/bin/sh\nPYTHONPATH={before_others(tmp_path)} exec {sys.executable} "$@"\n'
        other = executable(tmp_path / "python", script)
        result = gputune("check", "--only", "torch_version", "--python", str(other))
        assert "torch 1.0 is older than 2.4" in result.stdout

    def test_an_interpreter_that_hangs_is_a_gap(self, tmp_path):
        script = executable(tmp_path / "python", "#!/bin/sh\nsleep 600\n")
        code = (
            "import sys; from gputune import host; host.Host.ask_python.__defaults__ = (1.0, None)\n"
            f"sys.argv = ['gputune', 'check', '--python', {str(script)!r}, '--only', 'torch_version']\n"
            "import gputune_start; gputune_start.main()"
        )
        result = python("-c", code)
        assert result.returncode == 0
        assert "gave no answer within 1 s" in " ".join(result.stdout.split())
        assert "1 unknown" in result.stdout

    def test_no_colour_codes_without_a_terminal(self, stood_in):
        result = gputune("check", "--all", "--only", "numa", env=stood_in)
        assert "numa" in result.stdout
        assert "\x1b" not in result.stdout

    @pytest.mark.parametrize("verb", ["explain", "", "deploy"])
    def test_a_reader_that_goes_away_is_no_finding(self, verb):
        script = f'("$0" -m gputune {verb}; echo "ended with $?" >&2) | true'
        assert command(["sh", "-c", script, sys.executable]).stderr == "ended with 141\n"


def sleeping(seconds):
    return [
        process.pid for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", seconds]
    ]


@pytest.mark.slow
def test_a_profile_is_shown_as_it_was_written():
    assert "NVIDIA H200" in gputune("show", PROFILE).stdout
    assert json.loads(gputune("show", PROFILE, "--json").stdout)["schema"] == 1


def test_a_missing_profile_is_one_line_with_its_name_and_a_remedy():
    fault = refusal("show", "no-such.yaml")
    assert "no-such.yaml" in fault
    assert "gputune probe" in fault


class TestExplain:
    @pytest.mark.parametrize("name", ["matmul_precision", "shm_size", "conv", "launching"])
    def test_a_name_is_explained(self, name):
        assert gputune("explain", name).stdout.startswith(f"{name} (")

    def test_without_a_name_all_are_listed(self):
        listed = gputune("explain").stdout
        assert all(f" {name} " in listed for name in [*knobs.names(), *checks.names(), *benches.names()])

    def test_a_slip_of_the_pen_is_recognised(self):
        assert "did you mean omp_threads?" in refusal("explain", "omp_thread")


@pytest.mark.parametrize(
    ("of", "title"), [("profile", "Profile"), ("check", "CheckAnswer"), ("status", "StatusAnswer")]
)
def test_each_json_has_a_schema_and_a_profiles_knows_every_setting(of, title):
    schema = json.loads(gputune("explain", f"{of}-schema").stdout)
    assert schema["title"] == title
    if of == "profile":
        assert set(schema["properties"]["settings"]["properties"]) == set(knobs.names())
        assert schema["properties"]["settings"]["additionalProperties"] is False


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["explain", "profile-schema"],
        ["check", "--json", "--only", "numa"],
        ["show", PROFILE],
        ["explain"],
        ["apply", PROFILE],
        ["--help"],
        ["deploy"],
    ],
)
def test_an_output_that_is_full_is_one_line_and_not_the_code_of_findings(stood_in, words):
    result = gputune(*words, env=stood_in, stdout=Path("/dev/full"))
    assert result.returncode == 3
    assert result.stderr == "gputune: output: No space left on device\n"
