"""`gputune show PROFILE --html FILE`: where the page is written, and where it is not."""

from pathlib import Path

import pytest
from forked import gputune, refusal
from making import environ, on_a_full_disk, profile, written

from gputune.report import page

OLD = "<!DOCTYPE html><html><title>old: gputune</title>"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return written(tmp_path, profile())


def test_the_page_is_written_and_its_path_is_told(path: str, tmp_path: Path) -> None:
    done = gputune("show", path, "--html", "page.html", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "gputune: the page is page.html\n")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.text(profile(), path)


def test_an_older_page_is_replaced_and_a_link_s_target_is_written(path: str, tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text(OLD)
    (tmp_path / "link.html").symlink_to("old.html")
    assert gputune("show", path, "--html", "link.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "old.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.html", "old.html", "profile.yaml"]


@pytest.mark.parametrize("other", ["--json", "--as-code"])
def test_one_way_to_show_it_at_a_time(path: str, other: str, tmp_path: Path) -> None:
    assert "choose one of them" in refusal("show", path, "--html", "page.html", other, cwd=tmp_path)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (".", "--html .: is a directory; name a file in it"),
        ("no-such/page.html", "--html no-such/page.html: the folder "),
        ("-", "--html -: a page is written to a file; name one"),
        ("/dev/full", "--html /dev/full: is not a regular file; name a regular file\n"),
        ("profile.yaml", "--html profile.yaml: is another file, which would be lost; choose another name"),
        ("index.html", "--html index.html: is another file, which would be lost; choose another name"),
        ("link", "--html link: is another file, which would be lost; choose another name"),
        ("pages\x1b[2J/a.html", "--html pages\\x1b[2J/a.html: the folder "),
    ],
)
def test_a_place_that_is_none_for_a_page(path: str, target: str, said: str, tmp_path: Path) -> None:
    before = Path(path).read_bytes()
    (tmp_path / "link").symlink_to("profile.yaml")
    (tmp_path / "index.html").write_text("<!DOCTYPE html><html><title>Our group</title>")
    assert refusal("show", path, "--html", target, cwd=tmp_path).startswith(f"gputune: {said}")
    assert Path(path).read_bytes() == before


def test_a_profile_that_cannot_be_read_leaves_the_old_page(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(OLD)
    assert "no-such.yaml" in refusal("show", "no-such.yaml", "--html", "page.html", cwd=tmp_path)
    assert (tmp_path / "page.html").read_text() == OLD


@pytest.mark.real
def test_on_a_full_disk_the_old_page_stays(tmp_path: Path) -> None:
    made = written(tmp_path, profile())
    disk = tmp_path / "disk"
    disk.mkdir()
    done = on_a_full_disk(disk, "page.html", f"show {made} --html page.html", environ(), OLD)
    assert done.returncode == 3
    assert done.stdout == "filler\npage.html\n" + OLD + "\n"
    assert done.stderr == (
        "gputune: --html page.html: not written: No space left on device; make room, or name another place\n"
    )
