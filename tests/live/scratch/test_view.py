"""The user's files as a program sees them that must not change them."""

import os
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import pytest

from gputune.live.scratch._disk import replace_across
from gputune.live.scratch._view import View


class Files:
    def __init__(self, root: Path) -> None:
        self.root, self.scratch = root / "user", root / "scratch"
        self.view = self.again()
        (self.root / "ck").mkdir(parents=True)
        for name in ("a", "b"):
            (self.root / "ck" / name).write_text(f"the user's {name}")

    def again(self) -> View:
        """As another process sees it."""
        return View(str(self.scratch), [str(self.root / "cache")])

    def text(self, name: str, view: View | None = None) -> str:
        return Path((view or self.view).read(str(self.root / name))).read_text()

    def write(self, name: str, text: str = "new", *, keeps: bool = False) -> None:
        with open(self.view.written(str(self.root / name), keeps=keeps), "a" if keeps else "w") as file:
            file.write(text)

    def names(self, name: str) -> set[str]:
        path = str(self.root / name)
        places = self.view.places(path)
        return set(os.listdir(self.view.read(path))) if places is None else set(places)

    def is_there(self, name: str) -> bool:
        return os.path.lexists(self.view.read(str(self.root / name), follow=False))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    yield made
    assert {one.name: one.read_text() for one in (made.root / "ck").iterdir() if one.is_file()} == {
        "a": "the user's a", "b": "the user's b",
    }  # fmt: skip


def test_nothing_is_asked_of_the_disk_before_something_was_written(files: Files) -> None:
    assert files.view.read("relative/../x") == "relative/../x"
    assert files.view.places(str(files.root / "ck")) is None


def test_what_was_written_is_read_and_the_rest_is_the_users(files: Files) -> None:
    files.write("ck/a")
    assert (files.text("ck/a"), files.text("ck/b")) == ("new", "the user's b")
    assert files.names("ck") == {"a", "b"}
    assert files.view.read(str(files.root / "ck" / "b")) == str(files.root / "ck" / "b")


def test_a_file_that_is_changed_holds_what_it_held(files: Files) -> None:
    files.write("ck/a", " and more", keeps=True)
    assert files.text("ck/a") == "the user's a and more"


def test_other_processes_see_the_same(files: Files) -> None:
    files.write("ck/a")
    files.view.remove(str(files.root / "ck" / "b"))
    other = files.again()
    assert files.text("ck/a", other) == "new"
    assert not Path(other.read(str(files.root / "ck" / "b"))).exists()


def test_what_was_removed_is_gone_until_it_is_written_again(files: Files) -> None:
    path = str(files.root / "ck" / "a")
    files.view.remove(path)
    assert not files.is_there("ck/a")
    assert files.names("ck") == {"b"}
    with pytest.raises(FileNotFoundError):
        files.view.remove(path)
    files.write("ck/a")
    files.view.remove(path)
    assert not files.is_there("ck/a")


def test_a_renamed_file_is_at_its_new_name_alone(files: Files) -> None:
    files.view.move(str(files.root / "ck" / "a"), str(files.root / "ck" / "b"))
    assert (files.text("ck/b"), files.names("ck")) == ("the user's a", {"b"})


def test_a_renamed_folder_keeps_what_is_in_it(files: Files) -> None:
    files.write("ck/c")
    files.view.remove(str(files.root / "ck" / "b"))
    files.view.move(str(files.root / "ck"), str(files.root / "old"))
    assert files.names("old") == {"a", "c"}
    assert not files.is_there("ck")
    os.mkdir(files.view.created(str(files.root / "ck")))
    assert files.names("ck") == set()


def test_a_folder_that_holds_something_is_not_removed(files: Files) -> None:
    folder = str(files.root / "ck")
    with pytest.raises(OSError, match="not empty"):
        files.view.remove_folder(folder)
    for name in ("a", "b"):
        files.view.remove(f"{folder}/{name}")
    files.view.remove_folder(folder)
    assert not files.is_there("ck")


def test_links_of_the_user_and_of_the_program_lead_to_the_copies(files: Files) -> None:
    (files.root / "linked").symlink_to("ck")
    files.write("linked/a")
    assert files.text("ck/a") == "new"
    os.symlink(str(files.root / "ck" / "b"), files.view.created(str(files.root / "ck" / "latest")))
    os.symlink("../ck", files.view.created(str(files.root / "ck" / "around")))
    assert files.text("ck/latest") == files.text("ck/around/b") == "the user's b"
    files.write("ck/latest", "through a link")
    assert files.text("ck/b") == "through a link"


def test_links_that_lead_around_are_an_error(files: Files) -> None:
    files.write("ck/c")
    os.symlink("around", files.view.created(str(files.root / "around")))
    with pytest.raises(OSError, match="symbolic links"):
        files.view.read(str(files.root / "around" / "x"))


def test_a_program_that_has_gone_into_a_folder_of_its_own(files: Files) -> None:
    os.mkdir(files.view.created(str(files.root / "run")))
    with chdir(files.view.read(str(files.root / "run"))):
        assert files.view.users(os.getcwd()) == str(files.root / "run")
        assert Path(files.view.read("../ck/a")).read_text() == "the user's a"


def test_paths_by_a_descriptor(files: Files) -> None:
    descriptor = os.open(files.root / "ck", os.O_RDONLY)
    files.view.move("a", "c", src_dir_fd=descriptor, dst_dir_fd=descriptor)
    assert set(files.view.places(descriptor) or ()) == {"b", "c"}
    os.close(descriptor)


@pytest.mark.parametrize("path", ["/dev/null", "/proc/self/comm", "USER/cache/x", "s3://bucket/a", 3, None, ""])
def test_what_is_used_as_it_is(files: Files, path: object) -> None:
    given = path.replace("USER", str(files.root)) if isinstance(path, str) else path
    assert files.view.written(given) is given
    files.write("ck/c")
    assert files.view.read(given) is given


def test_what_is_there_is_not_created(files: Files) -> None:
    assert files.view.created(str(files.root / "ck")) == str(files.root / "ck")


def test_a_folder_that_is_not_there_has_no_room(files: Files) -> None:
    with pytest.raises(FileNotFoundError):
        files.write("nowhere/a")


def test_a_way_around_what_stays_leads_to_the_copies(files: Files) -> None:
    (files.root / "cache").mkdir()
    (files.root / "cache" / "out").symlink_to("../ck")
    kept = str(files.root / "cache" / "x")
    assert files.view.written(kept) == kept
    with chdir(files.root):
        for path in ("cache/../ck/a", "cache/out/a", "/dev/../proc/self/cwd/ck/a", f"/proc/self/root{files.root}/ck/a"):
            assert files.view.users(files.view.written(path)) == str(files.root / "ck" / "a")
            assert files.view.written(path) != path
        files.view.remove("cache/../ck/a")
    assert not files.is_there("ck/a")


def test_an_open_file_of_the_users_is_written_to_in_a_copy(files: Files) -> None:
    with (files.root / "ck" / "a").open() as file:
        for path in (f"/proc/self/fd/{file.fileno()}", f"/dev/fd/{file.fileno()}"):
            assert files.view.users(files.view.written(path, keeps=True)) == str(files.root / "ck" / "a")
    own = files.root / "other"
    with own.open("w") as file:
        own.unlink()
        for path in (f"/proc/self/fd/{file.fileno()}", "/dev/null", "/proc/self/stat"):
            assert files.view.written(path, keeps=True) == path


def test_files_in_memory_are_the_users_too(files: Files) -> None:
    assert files.view.users(files.view.written("/dev/shm/x")) == "/dev/shm/x"
    assert files.view.written("/dev/shm/x") != "/dev/shm/x"


def test_a_link_that_another_process_made_of_a_folder(files: Files) -> None:
    (files.root / "runs").mkdir()
    path = str(files.root / "runs" / "a")
    assert files.view.users(files.view.written(path)) == path
    child = files.again()
    child.remove_folder(str(files.root / "runs"))
    os.symlink(str(files.root / "ck"), child.created(str(files.root / "runs")))
    assert files.view.users(files.view.written(path)) == str(files.root / "ck" / "a")


def test_the_first_of_many_that_change_a_file_copies_it(files: Files) -> None:
    (files.root / "log").write_text("old\n" * 5_000_000)
    views = [files.again() for _ in range(8)]

    begun = Barrier(len(views))

    def append(view: View) -> None:
        begun.wait()
        with open(view.written(str(files.root / "log"), keeps=True), "a") as file:
            file.write("new\n")

    with ThreadPoolExecutor(len(views)) as pool:
        list(pool.map(append, views))
    assert files.text("log").count("new") == len(views)
    assert files.names("") == {"ck", "log"}


def test_what_is_no_file_is_never_opened(files: Files) -> None:
    folder = files.root / "pipes"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener, chdir(folder):
        listener.bind("socket")
    assert files.view.written(str(folder / "pipe"), keeps=True) == str(folder / "pipe")
    assert files.view.changed(str(folder / "pipe")) != str(folder / "pipe")
    files.view.move(str(folder), str(files.root / "moved"))
    assert files.names("moved") == {"pipe", "socket"}
    assert stat.S_ISFIFO(os.stat(files.view.read(str(files.root / "moved" / "pipe"))).st_mode)


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_with_a_pipe_is_renamed_to_another_disk(tmp_path: Path, end: str) -> None:
    (tmp_path / "old").mkdir()
    os.mkfifo(tmp_path / "old" / "pipe")
    (tmp_path / "old" / "file").write_text("text")
    with TemporaryDirectory(dir="/dev/shm") as other, chdir(other):
        replace_across(f"{tmp_path}/old", f"new{end}")
        assert stat.S_ISFIFO(os.stat("new/pipe").st_mode)
        assert (Path("new/file").read_text(), os.listdir()) == ("text", ["new"])
    assert os.listdir(tmp_path) == []
