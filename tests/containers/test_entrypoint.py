"""The entrypoint is not to be noticed: stdout, exit codes and signals are those of the user's command."""

import pytest
from containers.limits import HANDLES

pytestmark = pytest.mark.containers

WAITS = ("python3", "-c", 'import time; print("ready", flush=True); time.sleep(60)')
AS_PID_1 = ("apply", "auto", "--")
"""gputune's own words where it is the entrypoint, without tini before it."""


def test_stdout_is_the_commands_and_stderr_has_one_line_where_there_is_no_profile(docker, image):
    result = docker.run(image, "printf", "a\\nb")
    assert (result.returncode, result.stdout) == (0, "a\nb")
    [line] = result.stderr.splitlines()
    assert line.startswith("gputune: there is no profile for this machine")
    assert "GPUTUNE_PROBE=missing" in line


def test_switched_off_it_says_nothing(docker, image):
    result = docker.run(image, "echo", "out", options=["--env=GPUTUNE_DISABLE=1"])
    assert (result.returncode, result.stdout, result.stderr) == (0, "out\n", "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("sh", "-c", "exit 37"), 37),
        (("no-such-program",), 127),
        (("/etc/passwd",), 126),
        (("python3", "-c", "import os; os.kill(os.getpid(), 9)"), 137),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else str(one),
)
def test_exit_codes_are_the_commands(docker, image, words, code):
    assert docker.run(image, *words).returncode == code


@pytest.mark.parametrize(
    ("words", "options", "code"),
    [
        (("python3", "-c", HANDLES), [], 42),
        (WAITS, [], 143),  # it dies of the signal, since it is not PID 1: tini is
        ((*AS_PID_1, "python3", "-c", HANDLES), ["--entrypoint=gputune"], 42),
        (("python3", "-c", HANDLES), ["--pid=host"], 42),  # where tini is not PID 1 either
    ],
    ids=["handled", "not handled", "without tini", "in the host's pid namespace"],
)
def test_sigterm_reaches_the_command(docker, image, words, options, code):
    with docker.running(image, *words, options=options) as container:
        container.says("ready")
        ended, seconds = container.stop()
        assert (ended, container.said()[0]) == (code, "ready\n")
        assert container.said()[1].count("\n") == 1
    assert seconds < 10


@pytest.mark.parametrize("options", [[], ["--entrypoint=gputune"]], ids=["with tini", "without tini"])
def test_sigterm_ends_a_measurement_and_the_command_does_not_start(docker, image, options):
    words = [*(AS_PID_1 if options else []), "echo", "started"]
    more = ["--tmpfs=/cache:mode=1777", "--env=XDG_CACHE_HOME=/cache", "--env=GPUTUNE_PROBE=missing"]
    with docker.running(image, *words, options=[*options, *more]) as container:
        container.says("probing this machine")
        code, seconds = container.stop()
        assert (code, container.said()[0]) == (143, "")
    assert seconds < 10


def test_beside_nvidias_entrypoint_whose_scripts_go_first(docker, nvidia):
    result = docker.run(nvidia, "sh", "-c", 'echo "$SET_BY_ENTRYPOINT_D"; exit 37')
    assert (result.returncode, result.stdout) == (37, "\n=== A banner ===\nyes\n")
    assert result.stderr.count("\n") == 1
    with docker.running(nvidia, "python3", "-c", HANDLES) as container:
        container.says("ready")
        assert container.stop()[0] == 42
    assert "checks:" in docker.run(nvidia).stdout.splitlines()[-1]
