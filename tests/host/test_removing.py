"""What is removed with a folder, and what never is: what something else than gputune has mounted in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gputune.host import keeper
from gputune.host.kept import keeper_words

PRIVATE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount", "sh", "-ec"]
pytestmark = pytest.mark.skipif(
    subprocess.run([*PRIVATE, "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode != 0,
    reason="nothing can be mounted here",
)
REMOVE = "import sys; from gputune.host import keeper; keeper.REMOVING_SECONDS = 0.1; keeper.remove(sys.argv[1])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("data/deep", "own/mounted/deep", "own/plain"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("data/a", "data/deep/b", "own/mounted/hidden", "own/file", "own/plain/c"):
        (tmp_path / name).write_text("text")
    return tmp_path


def after(mounting: str, folder: Path, *, removing: str = "") -> set[str]:
    """What is left, by names, once something was mounted in `own` and `own` removed."""
    script = f"{mounting}; {removing} '{sys.executable}' -c '{REMOVE}' {folder}/own"
    subprocess.run([*PRIVATE, script], cwd=folder, check=True)
    return {str(one.relative_to(folder)) for one in folder.rglob("*")}


DATA = {"data", "data/a", "data/deep", "data/deep/b"}


@pytest.mark.parametrize(
    "mounting",
    [
        "mount --bind data own/plain",
        "mount --bind data own/mounted",
        "mount --bind data own",
        "mount --bind data/a own/file",
        "mount --bind data own/plain; mount --bind data own/plain",
        "mount --bind data own/plain; cd own/plain; exec 7< a; cd ../..",
    ],
)
def test_what_is_mounted_is_unmounted_and_stays_whole(mounting: str, folder: Path) -> None:
    assert after(mounting, folder) == DATA


def test_a_command_that_mounts_in_its_temporary_folder_loses_nothing(folder: Path) -> None:
    reader, lifeline = os.pipe()
    mounts = "mkdir $GPUTUNE_TEMPORARY/new; mount --bind data $GPUTUNE_TEMPORARY/new; ls $GPUTUNE_TEMPORARY/new"
    words = [*PRIVATE, 'exec "$@"', "sh", *keeper_words(reader, (), f"{folder}/own"), "sh", "-c", mounts]
    done = subprocess.run(words, cwd=folder, pass_fds=[reader], capture_output=True, text=True, check=True)
    for end in (reader, lifeline):
        os.close(end)
    assert done.stdout == "a\ndeep\n"
    assert {str(one.relative_to(folder)) for one in folder.rglob("*")} == DATA


def test_what_is_mounted_below_what_was_mounted_stays_mounted_there(folder: Path) -> None:
    mounting = (
        "trap 'test -e data/deep/b || exit 1' EXIT; mount --make-rshared /; mount -t tmpfs none data; mkdir data/deep;"
        "mount -t tmpfs none data/deep; touch data/deep/b; mount --rbind data own/plain"
    )
    assert after(mounting, folder) == DATA


def test_what_cannot_be_unmounted_stays_with_the_folders_above_it(folder: Path) -> None:
    left = after("mount --bind data own/plain", folder, removing="unshare --user --map-root-user --mount")
    assert left == DATA | {"own", "own/plain", "own/plain/c"}


def test_folders_are_removed_however_deep_and_also_read_only_ones(tmp_path: Path) -> None:
    own, here = tmp_path / "own", Path.cwd()
    own.mkdir()
    os.chdir(own)
    try:
        for _ in range(3000):
            Path("nested").mkdir()
            os.chdir("nested")
    finally:
        os.chdir(here)
    (own / "closed" / "below").mkdir(parents=True)
    (own / "closed" / "below").chmod(0o500)
    (own / "closed").chmod(0)
    (own / "link").symlink_to(tmp_path)
    keeper.remove(str(own))
    assert list(tmp_path.iterdir()) == []
