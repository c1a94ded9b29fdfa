"""A full disk costs no measurement: the room for a profile is taken first, and what was measured and cannot be kept is
applied all the same.
"""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from eight_ranks import PROBE, SHOW, answers, measured_by, number, probes, split, started, variables
from making import python

from gputune.profile.limits import MOST_BYTES


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of the room of four profiles."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={4 * MOST_BYTES},mode=700", "small", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(os.statvfs(disk).f_bsize))
    assert os.statvfs(disk).f_bavail == 0


@pytest.mark.real
@pytest.mark.parametrize("when", ["missing", "always"])
def test_where_there_is_no_room_nothing_is_measured_and_the_command_runs(tmp_path: Path, disk: Path, when: str) -> None:
    fill(disk)
    env = variables(tmp_path, disk) | {"GPUTUNE_PROBE": when}
    done = python("-c", PROBE, "apply", "auto", "--", *SHOW, env=env)
    assert (done.returncode, done.stdout, probes(env)) == (0, "None\n", [])
    assert f"gputune: not probed: {disk}/gputune: No space left on device; make room there, or set " in done.stderr
    assert not list((disk / "gputune").iterdir())


@pytest.mark.real
def test_a_disk_that_fills_while_one_of_eight_measures_costs_nothing(tmp_path: Path, disk: Path) -> None:
    env = variables(tmp_path, disk) | {"GATE": str(tmp_path / "gate")}
    with started(env) as eight:
        first, _ = split(env, eight)
        fill(disk)
        (tmp_path / "gate").touch()
        outs = answers(eight)
    assert probes(env) == [first.pid]
    assert measured_by(outs) == {number(first.pid)}


@pytest.mark.cluster
def test_one_of_eight_that_cannot_keep_its_profile_applies_it_and_the_next_one_measures_for_the_rest(
    tmp_path: Path,
) -> None:
    """The limit of a file's size stands for a disk that takes nothing from the first one alone."""
    env = variables(tmp_path, tmp_path / "cache") | {"GATE": str(tmp_path / "gate")}
    with started(env) as eight:
        first, others = split(env, eight)
        resource.prlimit(first.pid, resource.RLIMIT_FSIZE, (0, 0))
        (tmp_path / "gate").touch()
        assert measured_by(answers([first])) == {number(first.pid)}
        outs = answers(others)
    assert len(probes(env)) == 2
    assert measured_by(outs) == {number(probes(env)[1])}
    [kept] = (tmp_path / "cache" / "gputune").iterdir()
    assert kept.suffix == ".yaml"
