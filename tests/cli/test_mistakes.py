"""Wrong usage is one line: which word, what is wrong with it, and what was probably meant."""

from pathlib import Path

import pytest
from forked import refusal
from making import gputune

from gputune.cli._programs import require_a_command


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("chekc", "no such command 'chekc'. Did you mean 'check'?"),
        ("xyz", "no such command 'xyz'; see: gputune --help"),
        ("deploy kubernetes jb", "no such command 'jb'. Did you mean 'job'?"),
        ("--versoin", "no such option: --versoin (Possible options: --version)"),
        ("probe --budgett=quick", "no such option: --budgett (Possible options: --budget)"),
        ("check -x", "no such option: -x; see: gputune check --help"),
        ("show", "missing argument 'PROFILE'; see: gputune show --help"),
        ("merge a.yaml", "missing option '-o' / '--output'; see: gputune merge --help"),
        ("check --timeout", "option '--timeout' requires an argument; see: gputune check --help"),
        ("show --json=3 p.yaml", "option '--json' does not take a value; see: gputune show --help"),
        ("check here", "got unexpected extra argument(s) (here); see: gputune check --help"),
        ("check --fail-on warn", "--fail-on warn: there is no such level; did you mean warning?"),
        ("apply --numerics mixd p.yaml", "--numerics mixd: there is no such level; did you mean mixed?"),
        ("explain shmsize", "shmsize: there is no such setting, check or bench; did you mean shm_size?"),
        ("check pad", "got unexpected extra argument(s) (pad); see: gputune check --help"),
    ],
)
def test_a_line(typed, said):
    assert refusal(*typed.split()) == f"gputune: {said}\n"


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("pad 50257", "gputune explain dimension_multiple"),
        ("pad 50257 --profile profile.yaml --json", "gputune show --all PROFILE"),
        ("schema --of check", "gputune explain profile-schema, check-schema or status-schema"),
        ("probe --device all --each profiles", "gputune probe --device cuda:N -o FILE"),
        ("--version -v", "gputune bug-report"),
        ("--verbose --version", "gputune bug-report"),
        ("probe --each=profiles", "gputune probe --device cuda:N -o FILE"),
    ],
)
def test_what_was_removed_names_what_replaces_it(typed, instead):
    assert instead in refusal(*typed.split())
    assert "no such option: --vrbose" in refusal("check", "--vrbose", *typed.split())


NO_PROFILE = "no profile was given; type: gputune apply"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("apply -- python train.py", f"{NO_PROFILE} auto -- python train.py"),
        ("apply python train.py", f"{NO_PROFILE} auto -- python train.py"),
        ("apply python -m train", f"{NO_PROFILE} auto -- python -m train"),
        ("apply train.py", f"{NO_PROFILE} auto -- python train.py"),
        ("apply -- ./train.py --lr 1", f"{NO_PROFILE} auto -- python ./train.py --lr 1"),
        ("apply train.py -- --lr 1", f"{NO_PROFILE} auto -- python train.py --lr 1"),
        ("apply /opt/bin/python3.13t train.py", f"{NO_PROFILE} auto -- /opt/bin/python3.13t train.py"),
        ("apply torchrun train.py", f"{NO_PROFILE} auto -- torchrun train.py"),
        ("apply sh job", f"{NO_PROFILE} auto -- sh job"),
        ("apply job.sh", f"{NO_PROFILE} auto -- sh job.sh"),
        ("apply -- no-such-program x", f"{NO_PROFILE} auto -- no-such-program x"),
        (
            "apply --numerics mixed --strict -- python train.py",
            f"{NO_PROFILE} --numerics mixed --strict auto -- python train.py",
        ),
        ("apply --dry-run python train.py", f"{NO_PROFILE} --dry-run auto -- python train.py"),
    ],
)
def test_a_forgotten_profile_is_said_with_what_to_type(typed, said, tmp_path):
    assert refusal(*typed.split(), cwd=tmp_path) == f"gputune: {said}\n"


@pytest.mark.parametrize("typed", ["tune train.py 3", "tune -- train.py 3", "tune ./train.py 3"])
def test_a_script_that_is_no_command_is_said_with_what_to_type(typed, tmp_path):
    (tmp_path / "train.py").touch()
    script = typed.split()[-2]
    said = f"{script} is a script, not a command; type: gputune tune -- python {script} 3"
    assert refusal(*typed.split(), cwd=tmp_path) == f"gputune: {said}\n"


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (["tune", "--minutes", "3", "--", "train.py"], 2,
         "train.py is a script, not a command; type: gputune tune --minutes 3 -- python train.py"),
        (["apply", "machine.yaml", "--", "train.py"], 127,
         "train.py is a script, not a command; type: gputune apply machine.yaml -- python train.py"),
        (["apply", "--quiet", "auto", "./train.py", "3"], 126,
         "./train.py is a script, not a command; type: gputune apply --quiet auto -- python ./train.py 3"),
        (["tune", "--", "python train.py"], 2,
         "'python train.py' was quoted as one word; type: gputune tune -- python train.py"),
        (["tune", "--", "train.py --lr 1", "x"], 2,
         "'train.py --lr 1' was quoted as one word; type: gputune tune -- python train.py --lr 1 x"),
        (["tune", "--", "pyhton", "train.py"], 2, "pyhton: there is no such command; did you mean python?"),
        (["tune", "--", "./text"], 2, "./text: it may not be executed; type: chmod +x ./text"),
        (["tune", "gone.py"], 2,
         "gone.py: there is no such file; name one that is there: gputune tune -- python train.py"),
        (["tune", "--", "python", "gone.py"], 2, "gone.py: there is no such file; name one that is there"),
        (["tune", "--", "--minutes", "1", "python", "train.py"], 2,
         "--minutes is no command; options of gputune's stand before --; see: gputune tune --help"),
        (["tune", "--", "./folder"], 2, "./folder is a folder; name a command: gputune tune -- python train.py"),
        (["tune", "--", "python", "folder"], 2, "folder is a folder without a __main__.py; name the script in it"),
        (["tune", "--", "python", "-u", "-Wignore", "gone.py"], 2,
         "gone.py: there is no such file; name one that is there"),
        (["tune", "--", "./torchrun", "--nproc-per-node", "2", "gone.py"], 2,
         "gone.py: there is no such file; name one that is there"),
        (["tune", "--", "sh", "gone.sh", "3"], 2, "gone.sh: there is no such file; name one that is there"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_before_anything_is_started(typed, code, said, tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / "text").touch(0o644)
    (tmp_path / "torchrun").touch(0o755)
    (tmp_path / "folder").mkdir()
    assert refusal(*typed, cwd=tmp_path, code=code) == f"gputune: {said}\n"


@pytest.mark.parametrize(
    "words",
    ["python -m gone.py", "python -c gone.py", "python -", "python", "python train.py gone.py", "sh -c gone.sh",
     "python -X importtime gone.py", "sh train.py", "env python gone.py", "python folder",
     "./torchrun -m package gone.py", "./torchrun --standalone train.py gone.py"],
)  # fmt: skip
def test_a_command_that_may_run_is_started(words, tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    (tmp_path / "torchrun").touch(0o755)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").touch()
    monkeypatch.chdir(tmp_path)
    require_a_command(words.split(), "tune")


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        "apply {} -- echo ran", "apply {} echo ran", "apply -- {} -- echo ran", "apply -- {} echo ran",
        "apply no-such-profile -- echo ran", "apply no-such-profile echo ran", "apply no-such.yaml echo ran",
        "apply -- no-such.json echo ran", "apply python -- echo ran", "apply test -- echo ran", "apply . -- echo ran",
        "apply /no/such -- echo ran",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["test", "profile.yaml"])
def test_a_profile_that_was_named_runs_the_command_whatever_it_is(typed, name, tmp_path):
    """Also one with the name of a command, which everybody may execute."""
    (tmp_path / name).write_text("a: [")
    (tmp_path / name).chmod(0o755)
    done = gputune(*typed.format(name).split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("python train.py", "no such command 'python'; to run a program: gputune apply auto -- python train.py"),
        ("train.py", "no such command 'train.py'; to run a program: gputune apply auto -- python train.py"),
        ("run train.py", "no such command 'run'; to run a program: gputune apply auto -- python train.py"),
        ("auto -- torchrun x", "no such command 'auto'; to run a program: gputune apply auto -- torchrun x"),
        (
            "show train.py",
            "train.py is a program and no profile; to run a program: gputune apply auto -- python train.py",
        ),
        (
            "show -- python x.py",
            "got unexpected extra argument(s) (x.py); to run a program: gputune apply auto -- python x.py",
        ),
        (
            "probe train.py",
            "got unexpected extra argument(s) (train.py); to measure a program: gputune tune -- python train.py",
        ),
    ],
)
def test_a_program_in_a_wrong_place_is_told_how_it_runs(typed, said, tmp_path):
    assert refusal(*typed.split(), cwd=tmp_path) == f"gputune: {said}\n"


@pytest.mark.parametrize("number", ["300", "-1", "x"])
def test_a_number_out_of_range_is_one_line(number):
    said = refusal("check", f"--expect-gpus={number}")
    assert said.startswith("gputune: invalid value for '--expect-gpus': ")
    assert said.endswith("; see: gputune check --help\n")


@pytest.mark.parametrize(
    "typed",
    [
        "probe -o train.py",
        "tune -o train.py -- python train.py",
        "merge a.yaml b.yaml -o train.py",
        "show a.yaml --html train.py",
        "bug-report train.py",
    ],
)
def test_a_file_that_gputune_has_not_written_is_not_replaced(typed: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    assert ": is another file, which would be lost; choose another name\n" in refusal(*typed.split(), cwd=tmp_path)
    assert (tmp_path / "train.py").read_text() == "import torch\n"


@pytest.mark.parametrize(
    "text",
    [
        "my_project:\n  outputs:\n    dev: {type: duckdb}\n    schema: alice\n",  # dbt's profile.yaml
        "schema: public\ntables: [a]\n",
        "openapi: 3.0.0\npaths:\n  a:\n    schema: {type: string}\ngputune: no\n",
        '{"schema": 1, "tables": []}\n',
    ],
)
def test_nor_is_another_ones_that_has_a_schema_as_a_profile_does(text: str, tmp_path: Path) -> None:
    (tmp_path / "profile.yaml").write_text(text)
    assert "is another file, which would be lost" in refusal("probe", cwd=tmp_path)
    assert (tmp_path / "profile.yaml").read_text() == text


def test_a_file_that_cannot_be_read_is_not_replaced() -> None:
    said = refusal("probe", "-o", "/proc/self/mem")
    assert said == "gputune: -o /proc/self/mem: is another file, which would be lost; choose another name\n"
