"""The whole command against hostile profiles: one line, quickly and in little memory; and what it was to start, starts.

Each command line runs in a fork of one small process that has loaded what gputune's verbs load, so that hundreds take
seconds; a few run in a Python of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hostile_profiles import MANY_FAULTS, READ, REFUSED, Content, trained, whole
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import environ

MOST_SECONDS = 1.0
TRIES = 3
"""A neighbour on the same core costs CPU time, too, but not three times in a row."""
MOST_MIB = 200
COMMAND = ["--", "sh", "-c", "echo ran; exit 37"]

_SERVER = """
import contextlib, gc, io, json, os, signal, sys, tempfile
import gputune.cli, typer
gputune.cli.add_verbs()
gputune.cli.app = typer.main.get_command(gputune.cli.app)  # which is most of a short run
example = sys.argv[1]
for verb in ("show", "apply"):
    sys.argv = ["gputune", verb, example]
    unseen = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with contextlib.suppress(SystemExit), unseen[0], unseen[1]:
        gputune.cli.run()
gc.freeze()
answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    child = os.fork()
    if not child:
        signal.alarm(20)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        fresh, words = json.loads(line)
        if fresh:
            os.execv(sys.executable, [sys.executable, "-m", "gputune", *words])
        sys.argv = ["gputune", *words]
        try:
            gputune.cli.run()
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code)
    _, status, used = os.wait4(child, 0)
    out.seek(0)
    err.seek(0)
    said = {"code": os.waitstatus_to_exitcode(status), "out": out.read().decode(), "err": err.read().decode()}
    spent = {"seconds": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}
    print(json.dumps(said | spent), file=answers, flush=True)
"""


@dataclass(frozen=True)
class Done:
    """A command that ended. `seconds` are of CPU, so that a busy machine adds none; code -14 is a deadline's."""

    code: int
    out: str
    err: str
    seconds: float
    mib: float


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs gputune with these arguments, in a fork or, where it is to be `fresh`, in a Python of its own."""
    example = tmp_path_factory.mktemp("example") / "profile.yaml"
    example.write_bytes(whole())
    words = [sys.executable, "-c", _SERVER, str(example)]
    with subprocess.Popen(words, env=environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        asked, answered = server.stdin, server.stdout

        def run(*arguments: str | Path, fresh: bool = False) -> Done:
            spent = []
            while len(spent) < TRIES and min(spent, default=MOST_SECONDS + 1) > MOST_SECONDS:
                print(json.dumps([fresh, [str(word) for word in arguments]]), file=asked, flush=True)
                done = Done(**json.loads(answered.readline()))
                spent.append(done.seconds)
            assert min(spent) <= MOST_SECONDS, spent
            assert done.mib <= MOST_MIB
            return done

        yield run


def made(folder: Path, content: Content) -> Path:
    """The profile of this content, or whatever stands in its place."""
    path = folder / "profile.yaml"
    if callable(content):
        content(path)
    else:
        path.write_bytes(content)
    return path


def lines(text: str) -> list[str]:
    """The lines of what was printed, none of which steers the terminal."""
    found = text.removesuffix("\n").split("\n") if text else []
    assert all(line.isprintable() for line in found)
    return found


def only_line(done: Done) -> str:
    """The one line that it said."""
    assert done.err.endswith("\n")
    (line,) = lines(done.err)
    assert line.startswith("gputune: ")
    return line


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] if ",000 " in name else []) for name in REFUSED])
def refused(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A profile, and the beginning of what is said of it."""
    if request.param == "a file without permission" and os.geteuid() == 0:
        pytest.skip("root reads everything")
    content, fault = REFUSED[request.param]
    path = made(tmp_path, content)
    return path, f"gputune: {path}: {fault}"


class TestRefused:
    def test_alone_it_is_2_and_one_line(self, run: Run, refused: tuple[Path, str]) -> None:
        path, fault = refused
        for verb in ("show", "apply"):
            done = run(verb, path)
            assert (done.code, done.out) == (2, "")
            assert only_line(done).startswith(fault)

    @pytest.mark.slow
    def test_the_command_runs_all_the_same(self, run: Run, refused: tuple[Path, str]) -> None:
        path, fault = refused
        done = run("apply", path, *COMMAND)
        assert (done.code, done.out) == (37, "ran\n")
        assert only_line(done).startswith(fault)
        assert only_line(done).endswith("; running sh unchanged")

    @pytest.mark.slow
    def test_strict_it_does_not(self, run: Run, refused: tuple[Path, str]) -> None:
        path, fault = refused
        done = run("apply", "--strict", path, *COMMAND)
        assert (done.code, done.out) == (78, "")
        assert only_line(done).startswith(fault)


@pytest.mark.parametrize("name", MANY_FAULTS)
def test_the_first_of_many_faults_is_said(run: Run, tmp_path: Path, name: str) -> None:
    content, fault = MANY_FAULTS[name]
    path = made(tmp_path, content)
    assert only_line(run("show", path)).startswith(f"gputune: {path}: {fault}")


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_what_is_strange_but_valid_is_read(run: Run, tmp_path: Path, name: str) -> None:
    path = made(tmp_path, READ[name])
    for arguments, code in (
        (["show", path], 0),
        (["show", "--json", path], 0),
        (["apply", path], 0),
        (["apply", path, *COMMAND], 37),
    ):
        done = run(*arguments)
        assert done.code == code
        assert lines(done.out)
        lines(done.err)


@pytest.mark.timed
@pytest.mark.parametrize("name", ["a named pipe", "a billion laughs", "200,000 values"])
def test_counted_from_the_start_of_python(run: Run, tmp_path: Path, name: str) -> None:
    content, fault = REFUSED[name]
    path = made(tmp_path, content)
    for arguments, code in ((["show", path], 2), (["apply", path, *COMMAND], 37)):
        done = run(*arguments, fresh=True)
        assert done.code == code
        assert only_line(done).startswith(f"gputune: {path}: {fault}")


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid profile in which bytes are changed, cut out or doubled."""
    content = draw(st.sampled_from([whole(), trained()]))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        middle = content[start : start + draw(st.integers(1, 20))]
        change = draw(st.sampled_from([b"", middle * 2, draw(st.binary(max_size=3)), bytes([*middle[:1]]) * 200]))
        content = content[:start] + change + content[start + len(middle) :]
    return content


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=mutated(), verb=st.sampled_from(["show", "apply"]))
def test_a_mutated_profile_is_read_or_refused_in_one_line(run: Run, tmp_path: Path, content: bytes, verb: str) -> None:
    path = made(tmp_path, content)
    done = run(verb, path)
    assert done.code in (0, 2)
    lines(done.out)
    if done.code == 2:
        assert done.out == ""
        assert only_line(done).startswith(f"gputune: {path}: ")
    else:
        assert lines(done.out)
