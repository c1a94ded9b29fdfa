"""What a shell offers at Tab, and what the variable with which it asks does not do."""

import shutil

import pytest
from forked import gputune
from making import command, environ, on_path, written
from making import profile as made

from gputune import benches, checks, cli, knobs


def offered(*words, cwd="."):
    asked = {"COMP_WORDS": "\n".join(["gputune", *words]), "COMP_CWORD": str(len(words))}
    done = gputune(env=environ(_GPUTUNE_COMPLETE="complete_bash", **asked), cwd=cwd)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offer"),
    [
        ([""], cli.VERBS),
        (["s"], ["show", "status"]),
        (["--debug", "ap"], ["apply"]),
        (["deploy", "kubernetes", "d"], ["daemonset"]),
        (["deploy", "slurm", ""], ["sbatch", "task-prolog", "health-check"]),
        (["probe", "--b"], ["--budget", "--batch-size"]),
        (["probe", "--budget", ""], ["quick", "standard", "thorough"]),
        (["probe", "--device", ""], ["auto", "cpu", "cuda", "all"]),
        (["batch-size", "--device", ""], ["auto", "cpu", "cuda"]),
        (["probe", "--only", ""], benches.names()),
        (["check", "--only", "shm"], ["shm_size"]),
        (["check", "--skip", ""], checks.names()),
        (["check", "--fail-on", ""], ["error", "warning", "unknown", "never"]),
        (["tune", "--only", ""], knobs.names()),
        (["apply", "--only", "compile,am"], ["compile,amp_dtype"]),
        (["apply", "--numerics", "m"], ["mixed"]),
        (["apply", "--emit", ""], ["shell", "slurm-taskprolog"]),
        (["apply", "a"], ["auto"]),
        (["explain", "launchi"], ["launching"]),
        (["explain", "check-"], ["check-schema"]),
        (["apply", "auto", "--", ""], []),
        (["check", "--nfd", ""], []),
    ],
)
def test_words(words, offer):
    assert sorted(offered(*words)) == sorted(offer)


@pytest.mark.parametrize("name", ["a $(touch planted).yaml", "'; touch planted; '.yaml", "a.yaml"])
def test_no_name_of_a_file_is_in_an_answer_which_zsh_evaluates(tmp_path, name):
    (tmp_path / name).touch()
    assert offered("apply", "", cwd=tmp_path) == [], "then the shell offers its files, and quotes them"
    assert offered("tune", "--profile", "a", cwd=tmp_path) == ["auto"]


@pytest.mark.slow
def test_the_variable_does_nothing_to_a_command_line_with_words(tmp_path):
    inherited = environ(_GPUTUNE_COMPLETE="complete_bash")
    path = written(tmp_path, made())
    done = gputune("apply", "--quiet", path, "--", "printenv", "_GPUTUNE_COMPLETE", env=inherited)
    assert (done.returncode, done.stdout) == (0, "complete_bash\n")
    assert gputune("--version", env=inherited).stdout == gputune("--version").stdout


@pytest.mark.slow
@pytest.mark.parametrize(("line", "offer"), [("gputune che", "check"), ("gputune check --fail-on n", "never")])
def test_what_is_installed_completes_in_bash(tmp_path, line, offer):
    (tmp_path / "bash").symlink_to(shutil.which("bash"))
    env = environ(HOME=str(tmp_path), PATH=on_path(tmp_path), LINE=line)
    done = command([str(tmp_path / "bash"), "-c", "gputune --install-completion; exit $?"], env)
    script = tmp_path / ".bash_completions" / "gputune.sh"
    assert (done.returncode, done.stderr) == (0, "")
    assert str(script) in done.stdout
    assert f"source '{script}'" in (tmp_path / ".bashrc").read_text()
    ask = (
        'COMP_WORDS=($LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gputune_completion gputune; echo "${COMPREPLY[@]}"'
    )
    done = command(["bash", "--norc", "-c", f". {script}\n{ask}"], env)
    assert (done.stdout, done.stderr) == (f"{offer}\n", "")


@pytest.mark.slow
def test_a_home_that_cannot_be_written_to_is_one_line(tmp_path):
    (tmp_path / "bash").symlink_to(shutil.which("bash"))
    env = environ(HOME="/proc", PATH=on_path(tmp_path))
    done = command([str(tmp_path / "bash"), "-c", "gputune --install-completion; exit $?"], env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert done.stderr.startswith("gputune: /proc/.bashrc: ")
