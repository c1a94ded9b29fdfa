"""Which path of the user's lies where."""

import io
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from gputune.live.scratch._rerouting import Places


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def places(folder: Path) -> Places:
    return Places(str(folder))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    (made / "old.pt").write_text("old")
    return made


def test_the_same_path_below_the_scratch_folder_whose_parents_are_made(places: Places, folder: Path) -> None:
    assert places.written("/home/u/ckpt/a.pt") == f"{folder}/home/u/ckpt/a.pt"
    assert (folder / "home/u/ckpt").is_dir()
    assert not (folder / "home/u/ckpt/a.pt").exists()


def test_a_relative_path_is_of_the_current_folder(
    places: Places, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    for path in ("a/../ckpt/b.pt", "ckpt//b.pt", "./ckpt/b.pt/"):
        assert places.written(path) == f"{folder}{home}/ckpt/b.pt"


def test_the_type_stays(places: Places, folder: Path) -> None:
    assert places.written(b"/u/a") == f"{folder}/u/a".encode()
    assert places.written(Path("/u/a")) == folder / "u/a"
    assert type(places.written(PurePosixPath("/u/a"))) is PurePosixPath
    assert places.written("file:///u/a") == f"file://{folder}/u/a"


def test_a_kind_of_path_that_cannot_be_made_anew_becomes_text(places: Places, folder: Path) -> None:
    class Named:
        def __fspath__(self) -> str:
            return "/u/a"

    assert places.written(Named()) == f"{folder}/u/a"


@pytest.mark.parametrize(
    "path", [io.BytesIO(), 3, None, True, "", "s3://bucket/a", "hdfs://a", "memory://a", "a::s3://b/c"]
)
def test_what_is_no_local_path_is_returned_as_it_is(places: Places, folder: Path, path: Any) -> None:
    assert places.written(path) is path
    assert places.read(path) is path
    assert places.folder(path) is path
    assert places.both(path) == (path, path)
    assert not folder.exists()


def test_what_lies_there_already_stays(places: Places, folder: Path) -> None:
    place = places.written("/u/a.pt")
    assert places.written(place) == place
    assert places.written(str(folder)) == str(folder)
    assert places.written(f"{folder}2/a") == f"{folder}{folder}2/a"


def test_the_scratch_folder_by_its_other_name(tmp_path: Path) -> None:
    (tmp_path / "behind").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "behind")
    places = Places(str(tmp_path / "link"))
    assert places.written(f"{tmp_path}/behind/u/a.pt") == f"{tmp_path}/behind/u/a.pt"
    assert places.both(f"{tmp_path}/behind/u/a.pt")[1] == "/u/a.pt"


def test_links_of_the_users_are_not_followed(places: Places, folder: Path, home: Path) -> None:
    (home / "link").symlink_to(home)
    assert places.written(f"{home}/link/a.pt") == f"{folder}{home}/link/a.pt"


class TestRead:
    def test_what_was_written_is_read_and_else_the_users_own(self, places: Places, home: Path) -> None:
        path = home / "old.pt"
        assert places.read(path) is path
        Path(places.written(path)).write_text("new")
        assert places.read(path).read_text() == "new"
        assert path.read_text() == "old"

    def test_what_is_nowhere_keeps_its_name(self, places: Places) -> None:
        assert places.read("/u/nothing.pt") == "/u/nothing.pt"

    def test_a_name_in_the_scratch_folder_of_what_only_the_user_has(self, places: Places, home: Path) -> None:
        assert places.read(places.written(str(home / "old.pt"))) == str(home / "old.pt")

    def test_a_folder_that_was_made_only_for_one_below_it(self, places: Places, home: Path) -> None:
        (home / "model").mkdir()
        (home / "model/config.json").touch()
        Path(places.written(f"{home}/model/deeper/a.pt")).touch()
        assert places.read(f"{home}/model") == f"{home}/model"
        Path(places.written(f"{home}/model/config.json")).touch()
        assert places.read(f"{home}/model") == places.written(f"{home}/model")


def test_a_folder_that_the_user_has_is_there(places: Places, home: Path) -> None:
    assert Path(places.folder(home)).is_dir()
    assert not Path(places.folder(home / "none")).exists()


def test_both(places: Places, folder: Path) -> None:
    assert places.both("/u/a") == places.both(f"{folder}/u/a") == (f"{folder}/u/a", "/u/a")
