"""With GPUTUNE_PROBE=missing a container measures before its command starts, once, into a mounted folder."""

import pytest
from containers.limits import APPLIED

import gputune

pytestmark = pytest.mark.containers

LINE = "probing this machine before the command starts"


def test_of_containers_that_start_at_once_one_measures_and_later_ones_take_its_profile(docker, image, first_starts):
    assert [container.end() for container in first_starts.both] == [0, 0]
    outputs, messages = zip(*(container.said() for container in first_starts.both), strict=True)
    assert sorted(LINE in said for said in messages) == [False, True]
    assert sorted("waiting for another process" in said for said in messages) == [False, True]
    [kept] = (first_starts.cache / "gputune").glob("*.yaml")
    before = kept.stat()
    measured = gputune.load(kept)
    given_up = {gap.fact.split(".")[1] for gap in measured.gaps if gap.fact.startswith("bench.")}  # on busy CPUs
    assert {row.bench for row in measured.measurements} | given_up >= {"precision", "training_step", "dataloader"}

    later = docker.run(image, "python3", "-c", APPLIED, options=first_starts.options)

    assert (later.returncode, LINE in later.stderr) == (0, False)
    assert {later.stdout} == set(outputs)
    after = kept.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
