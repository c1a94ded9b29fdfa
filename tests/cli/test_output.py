"""A profile that is written over one that others may have changed meanwhile."""

import threading
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
from making import H200, profile, program

from gputune.cli._output import earlier, write_over
from gputune.errors import MeasureError, ProfileError, UsageError
from gputune.profile import Profile, Program, dump, load, save, with_programs
from gputune.version import __version__

NEW = profile({"omp_threads": 8})
TUNED = program("other.py")


NEWER = dump(profile(programs=(program(),))).replace("gputune: 0.1.0", "gputune: 99.0.0")
UNREAD = {
    "no profile": "a user's notes\n", "a broken one": "schema: [",
    "one of another schema": "schema: 2\ngputune: 9.0.0\n",
    "one with an unknown key": dump(profile()) + "more: 1\n", "a newer one with more": NEWER + "more: 1\n",
    "two documents": dump(profile()) + "---\nnotes: mine\n",
}  # fmt: skip


def keeping_programs(now: Profile | None) -> Profile:
    """As a probe does, which replaces all else."""
    return with_programs(NEW, now.programs) if now else NEW


def adding(now: Profile | None) -> Profile:
    """As a tune does, which adds its program to what is there."""
    return with_programs(now or profile(), [TUNED])


def names(path: Path) -> set[str]:
    return {one.entry for one in load(path).programs}


class TestReplacing:
    def kept(self, path: Path) -> tuple[Program, ...]:
        return write_over(path, keeping_programs).programs

    def test_the_programs_of_the_file_are_kept_and_nothing_else(self, tmp_path: Path) -> None:
        save(profile(programs=(program(),)), path := tmp_path / "p.yaml")
        assert write_over(path, keeping_programs) == load(path)
        assert load(path) == replace(NEW, programs=(program(),), gputune=__version__)

    def test_of_another_machine_too_since_each_says_where_it_was_measured(self, tmp_path: Path) -> None:
        elsewhere = program(fingerprint=replace(H200, gpu="NVIDIA A100-SXM4-80GB"))
        save(profile(programs=(elsewhere,)), tmp_path / "p.json")
        assert self.kept(tmp_path / "p.json") == (elsewhere,)

    @pytest.mark.parametrize("text", [None, "", dump(profile())])
    def test_a_file_that_is_empty_or_has_no_programs_is_replaced(self, tmp_path: Path, text: str | None) -> None:
        if text is not None:
            (tmp_path / "p.yaml").write_text(text)
        assert self.kept(tmp_path / "p.yaml") == ()
        assert load(tmp_path / "p.yaml") == NEW

    @pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
    def test_what_cannot_be_read_as_a_whole_stays(self, tmp_path: Path, text: str) -> None:
        (path := tmp_path / "p.yaml").write_text(text)
        with pytest.raises((ProfileError, UsageError)) as refused:
            earlier(path)
        assert refused.value.exit_code == 2
        assert str(refused.value).startswith(f"-o {path}: ")
        with pytest.raises(MeasureError, match="and so it stays as it is"):
            self.kept(path)
        assert path.read_text() == text


def test_for_stdout_it_is_printed_and_no_file_is_read_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "-").write_text("no profile")
    with chdir(tmp_path):
        written = write_over(Path("-"), adding)
    assert capsys.readouterr().out == dump(written)
    assert written.programs == (TUNED,)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("-", "no profile")]


def test_what_was_edited_since_it_was_read_stays(tmp_path: Path) -> None:
    save(profile(), path := tmp_path / "p.yaml")
    save(profile({"omp_threads": 3}), path)
    write_over(path, adding)
    assert load(path).settings["omp_threads"].value == 3
    assert names(path) == {"other.py"}


def test_of_two_that_write_at_once_neither_is_lost_and_no_lock_stays(tmp_path: Path) -> None:
    save(profile(), path := tmp_path / "p.yaml")
    is_inside, may_go_on = threading.Event(), threading.Event()

    def slowly(now: Profile | None) -> Profile:
        is_inside.set()
        may_go_on.wait(5)
        return with_programs(now or profile(), [program("slow.py")])

    slow = threading.Thread(target=write_over, args=(path, slowly))
    slow.start()
    is_inside.wait(5)
    quick = threading.Thread(target=write_over, args=(path, adding))
    quick.start()
    quick.join(0.3)
    assert quick.is_alive()
    may_go_on.set()
    slow.join()
    quick.join()
    assert names(path) == {"slow.py", "other.py"}
    assert [one.name for one in tmp_path.iterdir()] == ["p.yaml"]


def test_what_has_become_no_profile_meanwhile_stays_and_the_result_goes_beside_it(tmp_path: Path) -> None:
    (path := tmp_path / "p.yaml").write_text("schema: 1\nsettings: [half a line")
    with pytest.raises(MeasureError) as failed:
        write_over(path, adding)
    assert path.read_text() == "schema: 1\nsettings: [half a line"
    [beside] = [one for one in tmp_path.iterdir() if one != path]
    assert names(beside) == {"other.py"}
    assert failed.value.exit_code == 3
    assert str(failed.value).endswith(f", and so it stays as it is; the result is in {beside}")
    assert "\n" not in str(failed.value)


def test_in_a_folder_that_cannot_be_locked_it_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError

    monkeypatch.setattr("fcntl.flock", fails)
    write_over(tmp_path / "p.yaml", adding)
    assert names(tmp_path / "p.yaml") == {"other.py"}
