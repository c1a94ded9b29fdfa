"""Becoming the command, seen from outside: exit codes, signals, environment; and commands that start ranks."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from making import environ, python

from gputune.runtime.launch import starts_ranks

LAUNCH = """
import json, os, sys
from gputune.runtime.launch import launch
launch(json.loads(sys.argv[1]), {**os.environ, **json.loads(sys.argv[2])})
"""


def launch(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return python("-c", LAUNCH, json.dumps(words), json.dumps(variables))


def script(folder: Path, text: str, mode: int = 0o755) -> str:
    path = folder / "program"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_signal_reaches_the_command_which_is_the_process_itself() -> None:
    words = ["sh", "-c", "trap 'exit 9' TERM; echo $$; while :; do sleep 0.05; done"]
    arguments = [sys.executable, "-c", LAUNCH, json.dumps(words), "{}"]
    with subprocess.Popen(arguments, env=environ(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert int(child.stdout.readline()) == child.pid
        child.terminate()
        assert child.wait(20) == 9


def test_arguments_arrive_as_they_are() -> None:
    words = ["a b", "", "*", "$HOME", "--", "-x", "é\n"]
    done = launch(sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *words)
    assert json.loads(done.stdout) == words


def test_a_pipe_that_closes_ends_the_command() -> None:
    arguments = [sys.executable, "-c", LAUNCH, '["yes"]', "{}"]
    with subprocess.Popen(arguments, env=environ(), stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read(10)
        child.stdout.close()
        assert child.wait(20) == -signal.SIGPIPE


@pytest.mark.parametrize(
    ("name", "fault"), [("no-such-program", "no-such-program: No such file or directory\n"), ("", "'': ")]
)
def test_not_found_is_127_and_one_line(name: str, fault: str) -> None:
    done = launch(name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (127, "", 1)
    assert done.stderr.startswith(f"gputune: {fault}")


def test_a_variable_without_a_name_does_not_stand_in_the_way() -> None:
    assert launch("true", **{"": "x"}).returncode == 0


@pytest.mark.parametrize(("text", "mode"), [("#!/bin/sh\n", 0o644), ("no interpreter line\n", 0o755)])
def test_not_executable_is_126(tmp_path: Path, text: str, mode: int) -> None:
    path = script(tmp_path, text, mode)
    done = launch(path)
    assert done.returncode == 126
    assert done.stderr.startswith(f"gputune: {path}: ")
    assert done.stderr.count("\n") == 1


def test_the_command_is_found_on_the_childs_path(tmp_path: Path) -> None:
    script(tmp_path, "#!/bin/sh\necho found\n")
    assert launch("program", PATH=f"{tmp_path}:/usr/bin:/bin").stdout == "found\n"


def test_stderr_may_be_closed() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" \'["no-such"]\' {} 2>&-', sys.executable, LAUNCH], env=environ(), check=False
    )
    assert done.returncode == 127


class TestInherited:
    code = "import json; from gputune_start import inherited; print(json.dumps(inherited()))"

    def inherited(self, given: dict[str, str]) -> Any:
        return json.loads(python("-c", self.code, env=given).stdout)

    def without_locale(self) -> dict[str, str]:
        return {name: value for name, value in environ().items() if not name.startswith(("LC_", "LANG"))}

    def test_in_the_c_locale(self) -> None:
        given = self.without_locale()
        assert self.inherited(given) == given

    def test_a_locale_of_the_users_stays(self) -> None:
        given = {**self.without_locale(), "LC_CTYPE": "C.UTF-8"}
        assert self.inherited(given) == given

    def test_python_does_add_one(self) -> None:
        """What the two above rest on; were it otherwise, there would be nothing to take away."""
        done = python("-c", "import os; print(os.environ.get('LC_CTYPE'))", env=self.without_locale())
        assert done.stdout == "C.UTF-8\n"


def test_one_line_holds_nothing_that_steers_a_terminal() -> None:
    from gputune.host.stderr import one_line

    assert one_line("a\nb\t c\x1b[31m \N{PILE OF POO}") == "a b c\\x1b[31m \N{PILE OF POO}"
    assert os.linesep not in one_line("\r\n")


@pytest.mark.parametrize(
    "command",
    [
        ["torchrun", "--nproc-per-node", "8", "train.py"],
        ["/opt/venv/bin/torchrun", "train.py"],
        ["accelerate", "launch", "train.py"],
        ["python", "-m", "torch.distributed.run", "train.py"],
        ["accelerate-launch", "train.py"],
        ["python", "/opt/venv/bin/accelerate", "launch", "train.py"],
        ["python", "-m", "accelerate.commands.accelerate_cli", "launch", "train.py"],
        ["uv", "run", "fabric", "run", "train.py"],
        ["nohup", "torchrun", "train.py"],
    ],
)
def test_a_launcher(command: list[str]) -> None:
    assert starts_ranks(command)


@pytest.mark.parametrize(
    "command", [["python", "train.py", "torchrun"], ["./torchrun.sh"], ["python", "-m", "pkg", "ray"], ["true"], []]
)
def test_not_a_launcher(command: list[str]) -> None:
    assert not starts_ranks(command)
