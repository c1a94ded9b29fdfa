"""The process that measures ends, in whatever way: of those that wait for it the next one measures, and all others
apply what that one found.
"""

import signal
from pathlib import Path

import pytest
from eight_ranks import answers, measured_by, number, probes, split, started, variables

from gputune.host.node_lock import Undone, node_lock

ENDS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP]


@pytest.mark.cluster
@pytest.mark.parametrize("end", ENDS, ids=[one.name for one in ENDS])
def test_of_eight_ranks_one_other_measures_for_the_seven_that_are_left(tmp_path: Path, end: signal.Signals) -> None:
    env = variables(tmp_path, tmp_path / "cache") | {"GATE": str(tmp_path / "gate")}
    with started(env) as eight:
        first, others = split(env, eight)
        first.send_signal(end)
        assert first.wait(timeout=60) in (-end, 128 + end)
        (tmp_path / "gate").touch()
        outs = answers(others)
    assert len(probes(env)) == 2
    assert measured_by(outs) == {number(probes(env)[1])}
    [kept] = (tmp_path / "cache" / "gputune").iterdir()
    assert kept.suffix == ".yaml", "neither a lock nor a temporary file is left"


@pytest.mark.parametrize(
    ("end", "done"),
    [(None, True), (ValueError(), True), (Undone(), False), (SystemExit(143), False), (KeyboardInterrupt(), False)],
    ids=["done", "failed for all", "undone", "SIGTERM", "SIGINT"],
)
def test_those_who_wait_learn_of_work_that_is_done_alone(tmp_path: Path, end: BaseException | None, done: bool) -> None:
    def hold() -> None:
        with node_lock(tmp_path, "probe", 0):
            [file] = tmp_path.iterdir()
            hold.file, hold.before = file, file.stat().st_mtime_ns
            hold.open = file.open()
            if end is not None:
                raise end

    if end is None:
        hold()
    else:
        with pytest.raises(type(end)):
            hold()
    with hold.open as file:
        touched = Path(f"/proc/self/fd/{file.fileno()}").stat().st_mtime_ns != hold.before
    assert (touched, hold.file.exists()) == (done, not done)


def test_a_lock_that_its_holder_removed_meanwhile_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a process that opens the file just before its holder removes it, and locks it just after."""
    import fcntl

    lock = fcntl.flock
    removed = []

    def removing(descriptor: int, kind: int) -> None:
        if not removed:
            [file] = tmp_path.iterdir()
            file.unlink()
            removed.append(file)
        lock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", removing)
    with node_lock(tmp_path, "probe", 1) as turn:
        assert (turn.held, list(tmp_path.iterdir())) == (True, removed)
        with node_lock(tmp_path, "probe", 0) as another:
            assert not another.held
