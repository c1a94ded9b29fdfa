"""What a shell offers at Tab, and what the variable with which it asks does not do."""

import re
import shutil
import subprocess

import pytest
from command_line import contexts
from forked import gputune
from making import command, environ, on_path, written
from making import profile as made

from gputune import benches, checks, settings
from gputune.cli import _completion_values, _pages

VERBS = [path for path in _pages.PAGES if path and " " not in path]


def offered(*words, cwd="."):
    """What bash is told where the last word is being typed."""
    asked = {"COMP_WORDS": "\n".join(["gputune", *words]), "COMP_CWORD": str(len(words))}
    done = gputune(env=environ(_GPUTUNE_COMPLETE="complete_bash", **asked), cwd=cwd)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offer"),
    [
        ([""], VERBS),
        (["s"], ["show", "status", "schema"]),
        (["--debug", "ap"], ["apply"]),
        (["--version", "pro"], ["probe"]),
        (["deploy", ""], ["docker", "slurm", "kubernetes"]),
        (["deploy", "kubernetes", "d"], ["daemonset"]),
        (["deploy", "slurm", ""], ["sbatch", "task-prolog", "health-check"]),
        (["probe", "--b"], ["--budget", "--batch-size"]),
        (["probe", "--budget", ""], ["quick", "standard", "thorough"]),
        (["probe", "--budget", "="], ["quick", "standard", "thorough"]),
        (["probe", "--budget", "=", "q"], ["quick"]),
        (["probe", "--device", ""], ["auto", "cpu", "cuda", "all"]),
        (["batch-size", "--device", ""], ["auto", "cpu", "cuda"]),
        (["probe", "--only", ""], sorted(benches.names())),
        (["check", "--only", "shm"], ["shm_size"]),
        (["check", "--skip", ""], checks.names()),
        (["check", "--fail-on", ""], ["error", "warning", "unknown", "never"]),
        (["tune", "--only", ""], list(settings.names())),
        (["apply", "--only", "compile,am"], ["compile,amp_dtype"]),
        (["apply", "--numerics", "m"], ["mixed"]),
        (["apply", "--emit", ""], ["shell", "slurm-taskprolog"]),
        (["pad", "--dtype", "b"], ["bfloat16"]),
        (["explain", "launchi"], ["launching"]),
        (["apply", "auto", "--", ""], []),
        (["apply", "auto", "--", "ls", "--"], []),
        (["apply", "auto", "--", "python", "x.py", "--numerics", ""], []),
        (["tune", "--", "python", "x.py", "--only", ""], []),
        (["schema", "--of", ""], ["profile", "check", "status"]),
        (["check", "--nfd", ""], []),
        (["no-such-verb", "--x"], []),
    ],
)
def test_words(words, offer):
    assert offered(*words) == offer


def test_a_profile_is_auto_a_file_or_in_a_folder(tmp_path):
    (tmp_path / "runs").mkdir()
    for name in ("a.yaml", "b.json", "notes.txt", ".hidden.yaml"):
        (tmp_path / name).touch()
    assert offered("apply", "", cwd=tmp_path) == ["auto", "a.yaml", "b.json", "runs/"]
    assert offered("tune", "--profile", "a", cwd=tmp_path) == ["auto", "a.yaml"]
    assert offered("apply", "no", cwd=tmp_path) == [], "then the shell offers its files"


@pytest.mark.parametrize("name", ["a $(touch planted).yaml", "'; touch planted; '.yaml", "a\nb.yaml", "ü.yaml"])
def test_the_shell_itself_writes_a_name_that_has_to_be_quoted(tmp_path, name):
    (tmp_path / name).touch()
    assert offered("apply", "", cwd=tmp_path) == []


@pytest.mark.slow
def test_every_list_of_values_belongs_to_an_option_or_argument():
    known = {(path, name) for path, ctx in contexts().items() for one in ctx.command.params for name in one.opts}
    assert {(verb, name) for verb, name in _completion_values._OF_A_VERB} <= known
    assert set(_completion_values._OF_ANY_VERB) <= {name for _, name in known}


def asked(shell, line, **more):
    return gputune(env=environ(_GPUTUNE_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_ARGS=line, **more))


@pytest.mark.slow
def test_fish_and_zsh_are_told_what_a_word_is_for():
    assert asked("fish", "gputune ch", _TYPER_COMPLETE_FISH_ACTION="get-args").stdout == (
        f"check\t{_pages.PAGES['check'].short}\n"
    )
    assert asked("fish", "gputune check --", _TYPER_COMPLETE_FISH_ACTION="is-args").returncode == 0
    assert asked("fish", "gputune apply auto -- ", _TYPER_COMPLETE_FISH_ACTION="is-args").returncode == 1
    assert f'"check":"{_pages.PAGES["check"].short}"' in asked("zsh", "gputune ").stdout


@pytest.mark.parametrize(
    "given", [{"_GPUTUNE_COMPLETE": "complete_bash"}, {"_GPUTUNE_COMPLETE": "complete_bash", "COMP_WORDS": "gputune",
                                                      "COMP_CWORD": "x"}]
)  # fmt: skip
def test_an_odd_question_has_no_answer_and_no_line(given):
    done = gputune(env=environ(**given))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 1)


@pytest.mark.slow
def test_the_variable_does_nothing_to_a_command_line_with_words(tmp_path):
    inherited = environ(_GPUTUNE_COMPLETE="complete_bash")
    path = written(tmp_path, made())
    done = gputune("apply", "--quiet", path, "--", "printenv", "_GPUTUNE_COMPLETE", env=inherited)
    assert (done.returncode, done.stdout) == (0, "complete_bash\n")
    assert gputune("--version", env=inherited).stdout == gputune("--version").stdout


class TestSettingUp:
    @pytest.fixture
    def started(self, tmp_path):
        """`gputune WORD` below a shell with this name, with a HOME of its own."""
        path = on_path(tmp_path)
        shell = shutil.which("bash")

        def start(word, name="bash", home=tmp_path):
            (tmp_path / name).symlink_to(shell) if not (tmp_path / name).exists() else None
            script = f"gputune {word}; exit $?"
            return command([str(tmp_path / name), "-c", script], environ(HOME=str(home), PATH=path, SHELL=name))

        return start

    @pytest.mark.slow
    def test_the_script_is_written_where_typer_writes_it_and_named(self, started, tmp_path):
        done = started("--install-completion")
        written_to = tmp_path / ".bash_completions" / "gputune.sh"
        assert done.stdout == f"Written to {written_to}. It takes effect in the next bash that starts.\n"
        assert (done.returncode, done.stderr) == (0, "")
        assert f"source '{written_to}'" in (tmp_path / ".bashrc").read_text()
        assert written_to.read_text() == started("--show-completion").stdout.removesuffix("\n")

    @pytest.mark.slow
    def test_a_home_that_cannot_be_written_to_is_one_line(self, started):
        done = started("--install-completion", home="/proc")
        assert (done.returncode, done.stdout) == (3, "")
        assert re.fullmatch(
            r"gputune: --install-completion: /proc/\.bashrc: .+; print it instead: gputune --show-completion\n",
            done.stderr,
        )

    @pytest.mark.slow
    def test_a_file_of_another_encoding_is_one_line_and_stays(self, started, tmp_path):
        (tmp_path / ".bashrc").write_bytes(b"\xff\xfe")
        done = started("--install-completion")
        assert (done.returncode, done.stderr.count("\n")) == (3, 1)
        assert (tmp_path / ".bashrc").read_bytes() == b"\xff\xfe"

    @pytest.mark.slow
    @pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
    def test_a_shell_that_typer_has_no_script_for_is_one_line(self, started, option):
        done = started(option, name="tcsh")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"gputune: {option}: tcsh is not supported; start it from bash, zsh or fish\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offer"),
    [("gputune che", "check"), ("gputune check --fail-on n", "never"), ("gputune probe --budget = th", "thorough")],
)
def test_in_bash_with_typers_script(tmp_path, line, offer):
    env = environ(PATH=on_path(tmp_path), LINE=line)
    script = subprocess.run(
        [tmp_path / "gputune"],
        env={**env, "_GPUTUNE_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    ask = (
        'COMP_WORDS=($LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gputune_completion gputune; echo "${COMPREPLY[@]}"'
    )
    done = command(["bash", "--norc", "-c", f"{script}\n{ask}"], env)
    assert (done.stdout, done.stderr) == (f"{offer}\n", "")
