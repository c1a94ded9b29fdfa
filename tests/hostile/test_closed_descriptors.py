"""gputune started with some of stdin, stdout and stderr closed does what it does with all of them open."""

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
import stand_in
from making import environ, profile, written

PROBE = ["probe", "--device", "cpu", "--budget", "quick", "--only", "precision", "-o", "p.yaml"]
CLOSED = [closed for count in (1, 2, 3) for closed in combinations((0, 1, 2), count)]


def ran(closed: tuple[int, ...], *words: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    closing = " ".join({0: "<&-", 1: ">&-", 2: "2>&-"}[one] for one in closed)
    script = ["sh", "-c", f'exec "$@" {closing}', "sh", *words]
    return subprocess.run(
        script, env=environ(**variables), cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def ours(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "gputune", *words]


@pytest.mark.sampled(7)
@pytest.mark.slow
@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_a_probe_measures(closed: tuple[int, ...], tmp_path: Path) -> None:
    stand_in.torch(tmp_path)
    path = stand_in.benches(tmp_path, precision="print('noise'); yield told('precision')")
    done = ran(closed, *ours(*PROBE), cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "p.yaml").read_text()
    assert "metric: told" in text
    assert "noise" not in text


@pytest.mark.sampled(7)
@pytest.mark.slow
@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_check_sees_torch(closed: tuple[int, ...], tmp_path: Path) -> None:
    """Also for node-feature-discovery's file, whose labels must not say unknown."""
    stand_in.torch(tmp_path)
    (tmp_path / "features").mkdir()
    words = ours("check", "--nfd", str(tmp_path / "features"))
    path = stand_in.benches(tmp_path)
    done = ran(closed, *words, cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    [labels] = (tmp_path / "features").iterdir()
    assert "gputune.dev/torch=2.13.0-cpu" in labels.read_text()
    assert "unknown" not in labels.read_text()


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("closed", [one for one in CLOSED if 1 not in one], ids=str)
def test_status_answers(closed: tuple[int, ...], tmp_path: Path) -> None:
    done = ran(closed, *ours("status", "--json"), cwd=tmp_path)
    assert json.loads(done.stdout)["torch"], done


@pytest.mark.slow
@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_the_command_of_apply_finds_closed_what_was_closed(closed: tuple[int, ...], tmp_path: Path) -> None:
    command = ["sh", "-c", "for one in 0 1 2; do [ -e /proc/$$/fd/$one ] && found=$found$one; done; echo $found >found"]
    done = ran(closed, *ours("apply", written(tmp_path, profile()), "--", *command), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plain = ran(closed, *command, cwd=tmp_path.parent)
    assert plain.returncode == 0
    assert (tmp_path / "found").read_text() == (tmp_path.parent / "found").read_text()


FROM_PYTHON = """
import sys
from pathlib import Path
import gputune
from gputune.bench_process.process import BenchProcess
from gputune.host import Host
from gputune.facts import _where_is_torch
found = Host().ask_python(Path(_where_is_torch.__file__))
with BenchProcess() as process:
    from gputune.bench_process.messages import Start
    sys.path.insert(0, sys.argv[1])
    from recorded import facts_of
    process.ready(Start(device="cpu", facts=facts_of("cpu-only")))
Path("found").write_text(str(found["folder"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_so_does_a_program_that_uses_it(closed: tuple[int, ...], tmp_path: Path) -> None:
    path = stand_in.torch(tmp_path)
    done = ran(
        closed, sys.executable, "-c", FROM_PYTHON, str(Path(stand_in.__file__).parent), cwd=tmp_path, PYTHONPATH=path
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "found").exists()
