"""Nothing that a stranger planted steers a terminal: not from a profile, a file's name, a variable, a device's name or
an exception; and what is printed arrives whole, however slow its reader and however strange the terminal's size.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import making
import pytest
import stand_in
import yaml
from forked import gputune
from making import environ, profile, written
from planted import ESCAPING, NAME, below, on_terminal, planted_profile, unseen, unseen_on_terminal
from recorded import facts_of

from gputune import checks
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.profile import dump, dump_json, parse
from gputune.report import json as report_json
from gputune.report import nfd, prometheus, severities, terminal
from gputune.runtime.environment import SHIM

OF_A_PROFILE = {
    "show": ("show", "@"),
    "show --json": ("show", "@", "--json"),
    "show --as-code": ("show", "@", "--as-code"),
    "merge": ("merge", "@", "@", "-o", "-"),
    "apply": ("apply", "@"),
    "apply --dry-run": ("apply", "--dry-run", "@", "--", "true"),
    "apply --ignore-fingerprint": ("apply", "--ignore-fingerprint", "--dry-run", "@"),
    "apply -- CMD": ("apply", "@", "--", "true"),
    "apply --strict": ("apply", "--strict", "@", "--", "true"),
    "apply --emit": ("apply", "--emit", "slurm-taskprolog", "@"),
    "configmap": ("deploy", "kubernetes", "configmap", "--profile", "@"),
}
"""Each verb that reads a profile, which stands where the @ is."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("planted"), planted_profile())


def given(words, path):
    return [path if word == "@" else word for word in words]


@pytest.mark.parametrize("words", OF_A_PROFILE.values(), ids=OF_A_PROFILE)
class TestProfile:
    def test_its_text_arrives_as_text(self, words, path):
        done = gputune(*given(words, path))
        assert done.returncode in (0, 78)
        assert not unseen(done.stdout + done.stderr)

    def test_so_does_its_name(self, words, tmp_path):
        path = written(below(tmp_path), planted_profile())
        done = gputune(*given(words, path))
        assert done.returncode in (0, 78)
        assert not unseen(done.stdout + done.stderr)

    def test_and_that_of_one_that_is_missing(self, words, tmp_path):
        done = gputune(*given(words, str(tmp_path / NAME)))
        assert not unseen(done.stdout + done.stderr)
        assert "\\x1b]2;title\\x07" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["show", "merge", "apply", "apply --dry-run"])
def test_a_terminal_gets_no_more_than_richs_own_colours(name, path, tmp_path):
    code, said = on_terminal([sys.executable, "-m", "gputune", *given(OF_A_PROFILE[name], path)])
    assert code == 0, said
    assert not unseen_on_terminal(said)
    assert b"[bold]x[/bold]" in b"".join(said.split()) or name == "merge"


class TestNames:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "words",
        [
            [NAME], [f"--{NAME}"], ["explain", NAME], ["check", "--only", NAME], ["check", "--fail-on", NAME],
            ["check", "--python", NAME], ["check", "--nfd", NAME], ["probe", "-o", f"{NAME}/x.yaml"],
            ["probe", "--budget", NAME], ["probe", "--dataset", NAME], ["probe", "--shapes", NAME],
            ["batch-size", NAME], ["tune", "-o", f"{NAME}/x", "--", "true"], ["tune", "--", NAME],
            ["apply", "--numerics", NAME, "x"], ["apply", "x", f"--{NAME}"], ["apply", "x", "--", NAME],
            ["install-hook", "--python", NAME], ["deploy", NAME], ["deploy", "docker", "--image", NAME],
            ["deploy", "slurm", NAME], ["deploy", "slurm", "task-prolog", "--profile", f"/{NAME}"],
            ["deploy", "kubernetes", "job", "--name", NAME, "--", "true"], ["merge", NAME, "-o", NAME],
            ["--debug", "show", NAME], ["status", "--python", NAME],
        ],
    )  # fmt: skip
    def test_a_message_quotes_them_readably(self, words, tmp_path):
        done = gputune(*words, cwd=tmp_path)
        assert done.returncode
        assert not unseen(done.stdout + done.stderr)
        assert done.stderr

    def test_a_path_of_any_length(self, tmp_path):
        done = gputune("show", "\x1b[8m" * 2000)
        assert done.stderr.count("\n") == 1
        assert not unseen(done.stderr)

    @pytest.mark.slow
    def test_the_hint_for_a_shell_names_the_same_file(self, tmp_path):
        """It can be copied: the name is quoted as bytes."""
        path = written(below(tmp_path), profile())
        hint = next(line for line in gputune("apply", path).stderr.splitlines() if "one command" in line)
        words = hint.split("apply ", 1)[1].split(" -- ")[0]
        seen = subprocess.run(["sh", "-c", f"printf %s {words}"], capture_output=True, check=True).stdout
        assert seen == os.fsencode(path)

    @pytest.mark.parametrize("what", [["docker"], ["slurm", "sbatch"]])
    def test_a_deployed_command_is_the_same_words(self, what, tmp_path):
        word = ESCAPING + "'\n$(x)"
        done = gputune("deploy", *what, "--", "python", word)
        assert not unseen(done.stdout)
        begin = "gputune python" if what == ["docker"] else "command=("
        words = done.stdout.split(begin, 1)[1].split("\ngputune=(")[0].removesuffix(")")
        seen = subprocess.run(["sh", "-c", f'printf "%s|" {words}'], capture_output=True, check=True).stdout
        assert seen.decode().endswith(f"{word}|")


VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "NCCL_DEBUG", "NCCL_P2P_DISABLE",
    "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR",
    "GPUTUNE_PROFILE", "GPUTUNE_NUMERICS", "GPUTUNE_PROBE", "SLURM_JOB_ID", "CUBLAS_WORKSPACE_CONFIG",
)  # fmt: skip


@pytest.fixture(scope="module")
def steered(tmp_path_factory):
    shown = dict.fromkeys(VARIABLES, ESCAPING)
    return environ(PYTHONPATH=stand_in.torch(tmp_path_factory.mktemp("torch")), **shown)


class TestVariables:
    @pytest.mark.slow
    @pytest.mark.parametrize("words", [["check"], ["check", "--json"], ["apply", "auto", "--", "true"], ["status"]])
    def test_their_values_arrive_as_text(self, words, steered):
        done = gputune(*words, env=steered)
        assert not unseen(done.stdout + done.stderr)
        assert done.stdout or done.stderr

    @pytest.mark.parametrize("emit", ["shell", "slurm-taskprolog"])
    def test_what_a_shell_and_slurm_read(self, emit, path):
        done = gputune("apply", "--emit", emit, path, env=environ(PYTHONPATH=ESCAPING))
        assert not unseen(done.stdout + done.stderr)


class TestDevices:
    FACTS = facts_of()

    def steered(self):
        gpus = tuple(replace(gpu, name=ESCAPING, uuid=ESCAPING) for gpu in self.FACTS.gpus)
        driver, libraries = replace(self.FACTS.driver, version=ESCAPING), replace(self.FACTS.libraries, torch=ESCAPING)
        return replace(self.FACTS, gpus=gpus, driver=driver, libraries=libraries)

    def test_nvmls_answer_is_no_name(self, capsys):
        found = facts_of(gpu={"Name": ESCAPING})
        terminal.print_findings(checks.run(found), sys.stdout)
        terminal.print_gaps(found.gaps, sys.stdout)
        assert not unseen(capsys.readouterr().out)

    def test_labels_metrics_and_json(self):
        finding = Finding(check="shm_size", severity="ERROR", message=ESCAPING, remedy=ESCAPING, subject=ESCAPING)
        for text in (
            nfd.text(self.steered(), [finding]),
            prometheus.text(self.steered(), [finding]),
            report_json.check(self.steered(), [finding], severities.summary([finding], "error")),
        ):
            assert not unseen(text)
        assert json.loads(text)["findings"][0]["message"] == ESCAPING

    def test_a_metric_is_a_line(self):
        assert prometheus.series("x", a="b\nc\x1b") == 'x{a="b\\nc\\\\x1b"}'


class TestFiles:
    """What is written reads back as it was, and `cat` does no harm."""

    @pytest.mark.parametrize("write", [dump, dump_json])
    def test_a_profile(self, write):
        made = planted_profile()
        text = write(made)
        assert not unseen(text)
        assert parse(text.encode()) == made

    def test_a_stock_reader_agrees(self):
        made = planted_profile()
        assert yaml.safe_load(dump(made))["gaps"] == [{"fact": ESCAPING, "reason": ESCAPING}]

    def test_what_can_be_seen_stays_as_it_is(self):
        assert "a Grüße 日本語 b" in dump(profile({}, gaps=(Gap(fact="x", reason="a Grüße 日本語 b"),)))


class TestInAProgram:
    """The lines that gputune's shim writes to the stderr of a user's program."""

    def ran(self, folder, code, **variables):
        env = environ(PYTHONPATH=os.pathsep.join([SHIM, stand_in.torch(folder)]), **variables)
        done = making.python("-c", code, env=env)
        assert "gputune: " in done.stderr, done
        return done.stderr

    @pytest.mark.parametrize("payload", [{"settings": {ESCAPING: 1}}, {"settings": {}, "advice": {ESCAPING: 1}}])
    def test_a_payload(self, payload, tmp_path):
        assert not unseen(self.ran(tmp_path, "import torch", GPUTUNE_APPLY=json.dumps(payload), GPUTUNE_REPORT="1"))

    @pytest.mark.slow
    def test_a_report_is_json(self, tmp_path):
        payload = json.dumps({"settings": {ESCAPING: 1}})
        said = self.ran(tmp_path, "import torch", GPUTUNE_APPLY=payload, GPUTUNE_REPORT="json")
        assert not unseen(said)
        assert json.loads(said.splitlines()[-1])["gputune"]["settings"][0]["setting"] == ESCAPING

    def test_a_loader_that_refuses(self, tmp_path):
        (tmp_path / "refusing.py").write_text(
            f"import sys, importlib.machinery as m\n"
            f"class L(m.SourceFileLoader):\n"
            f"    def __setattr__(self, name, value):\n"
            f"        if name == 'exec_module': raise AttributeError({ESCAPING!r})\n"
            f"        object.__setattr__(self, name, value)\n"
            f"class F:\n"
            f"    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == 'torch':\n"
            f"            spec = m.PathFinder.find_spec(name); spec.loader = L(name, spec.origin); return spec\n"
            f"sys.meta_path.insert(1, F())\n"
        )
        assert not unseen(self.ran(tmp_path, "import refusing, torch", GPUTUNE_APPLY='{"settings": {}}'))


@pytest.mark.slow
def test_a_line_of_progress_is_text():
    code = (
        "from planted import ESCAPING; from gputune.progress import Progress\n"
        "from gputune.report.progress import shown\n"
        "told = Progress(part=ESCAPING, doing=ESCAPING)\n"
        "with shown(told) as tell: tell(told)\n"
    )
    env = environ(PYTHONPATH=making.before_others(Path(making.__file__).parent), COLUMNS="400")
    code, said = on_terminal([sys.executable, "-c", code], env)
    assert code == 0, said
    assert not unseen_on_terminal(said)
    assert b"[bold]x[/bold]" in b"".join(said.split())


class TestWhole:
    """Stdout of a shell script in which Node.js or ssh has made the pipe non-blocking."""

    @pytest.mark.sampled(2)
    @pytest.mark.slow
    @pytest.mark.parametrize("more", [{}, {"PYTHONUNBUFFERED": "1"}])
    def test_a_slow_reader_gets_everything(self, tmp_path, more):
        rows = tuple(making.row("transfer", "throughput", 1.0, copy="x" * 100) for _ in range(400))
        words = [sys.executable, "-m", "gputune", "show", written(tmp_path, profile({}, measurements=rows)), "--json"]
        expected = subprocess.run(words, env=environ(), capture_output=True, check=True).stdout
        assert len(expected) > 100_000
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        child = subprocess.Popen(words, env=environ(**more), stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        got = b""
        while part := os.read(reader, 1000):
            got += part
            time.sleep(0.0005)
        os.close(reader)
        assert (child.communicate()[1], child.returncode) == (b"", 0)
        assert got == expected

    @pytest.mark.slow
    def test_a_reader_that_goes_away_is_no_fault(self, tmp_path):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        words = [sys.executable, "-m", "gputune", "explain"]
        child = subprocess.Popen(words, env=environ(), stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        os.read(reader, 10)
        os.close(reader)
        assert (child.communicate()[1], child.returncode) == (b"", 141)


@pytest.fixture(scope="module")
def usual(path):
    env = environ()
    for name in ("COLUMNS", "LINES"):
        env.pop(name, None)
    verbs = (("--help",), ("show", "@"), ("apply", "@"), ("apply", "--help"), ("deploy", "slurm", "--help"))
    return {words: gputune(*given(words, path), env=env) for words in verbs}


class TestSizes:
    VALUES = ("0", "1", "-5", "nonsense", "²", "9" * 5000, "99999999")

    @pytest.mark.slow
    @pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:10])
    def test_one_that_is_none_changes_nothing(self, value, usual, path):
        for words, done in usual.items():
            again = gputune(*given(words, path), env=environ(COLUMNS=value, LINES=value, TERMINAL_WIDTH=value))
            assert (again.returncode, again.stdout, again.stderr) == (done.returncode, done.stdout, done.stderr)

    @pytest.mark.slow
    def test_the_command_gets_it_as_it_was(self, path):
        words = ["apply", path, "--", "sh", "-c", 'echo "[$COLUMNS]"']
        assert making.gputune(*words, env=environ(COLUMNS="0")).stdout == "[0]\n"


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}])
def test_any_encoding(variables, path):
    done = making.gputune("show", path, env=environ(**{"LC_ALL": "C", **variables}))
    assert (done.returncode, done.stderr) == (0, "")
    assert not unseen(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["1>&-", "2>&-"])
@pytest.mark.parametrize("words", ["show", "apply", "merge"])
def test_a_closed_stream_is_no_fault(closed, words, path):
    """Only a profile that was to be written there is missed."""
    start = f"{sys.executable} -m gputune"
    done = making.command(["sh", "-c", f"{start} {' '.join(given(OF_A_PROFILE[words], path))} {closed}"])
    assert done.returncode == (3 if (words, closed) == ("merge", "1>&-") else 0)
    assert not unseen(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
