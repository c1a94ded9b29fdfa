"""Others lay files, links, folders and locks where gputune keeps its profiles: none is taken, followed, overwritten or
waited for.

The strangers are other users for real, in a folder of /tmp that all may enter.
"""

import ctypes
import encodings.utf_8_sig
import fcntl
import grp
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from eight_ranks import PROBE, SHOW, number, probes, variables
from making import H200, profile

from gputune.errors import MeasureError, ProfileError
from gputune.host import node_lock, trust
from gputune.profile import load, places, save

ME, STRANGER = 61234, 61235

# That user may read everything, since this Python may be in the home folder of root's, and write what is his own.
AS_ME = ["setpriv", f"--reuid={ME}", f"--regid={ME}", "--clear-groups", "--inh-caps=-all,+dac_read_search",
         "--ambient-caps=-all,+dac_read_search", sys.executable]  # fmt: skip

LOADED = (encodings.utf_8_sig, grp)
"""For the same reason what a fork of this process imports must be here before."""


@pytest.fixture
def shared() -> Iterator[Path]:
    if os.geteuid():
        pytest.skip("other users need root")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def as_user(uid: int, do: Callable[[], Any]) -> Any:
    """What `do()` returns where a process of this user and its own group runs it, or the error that it raises."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            try:
                said: Any = {"returned": do()}
            except Exception as error:
                said = {"raised": f"{type(error).__name__}: {error}"}
            os.write(there, json.dumps(said, default=str).encode())
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        said = json.loads(pipe.read())
    os.waitpid(child, 0)
    return said.get("returned", said.get("raised"))


def give(path: Path, uid: int, mode: int, gid: int | None = None) -> Path:
    if path.suffix:
        path.write_text("precious\n")
    else:
        path.mkdir(exist_ok=True)
    os.chown(path, uid, uid if gid is None else gid)
    path.chmod(mode)
    return path


def planted(folder: Path, uid: int, threads: int = 9) -> Path:
    path = folder / places.file_name(H200)
    save(profile({"omp_threads": threads}), path)
    os.chown(path, uid, uid)
    return path


def taken(cache: Path) -> Any:
    """The number of threads that `auto` takes from this cache as ME, and what it says."""

    def look() -> Any:
        said: list[str] = []
        found = places.found(H200, {"XDG_CACHE_HOME": str(cache)}, said.append)
        return [found and found[1].settings["omp_threads"].value, said]

    return as_user(ME, look)


@pytest.mark.real
class TestWhatAutoTakes:
    @pytest.mark.parametrize(
        ("above", "folder", "uid", "mode"),
        [
            ((ME, 0o755), (ME, 0o700), ME, 0o644),
            ((0, 0o755), (0, 0o755), 0, 0o644),
            *(((ME, group), (ME, group), ME, 0o664) for group in (0o775, 0o2775, 0o770)),  # as with a umask of 002
            *(((0, group, 0), (ME, 0o700, 0), ME, 0o644) for group in (0o775, 0o2775)),  # an image for any user
        ],
    )
    def test_its_own_and_roots(self, shared: Path, above, folder, uid: int, mode: int) -> None:
        cache = give(shared / "above", *above)
        planted(give(cache / "gputune", *folder), uid).chmod(mode)
        assert taken(cache) == [9, []]

    @pytest.mark.parametrize(
        ("above", "folder", "file", "which"),
        [
            ((0, 0o1777), (STRANGER, 0o755), (STRANGER, 0o644), "gputune belongs to user 61235"),
            ((0, 0o1777), (STRANGER, 0o755), (ME, 0o644), "gputune belongs to user 61235"),
            ((0, 0o755), (0, 0o755), (STRANGER, 0o644), ".yaml belongs to user 61235"),
            ((0, 0o755), (0, 0o775), (ME, 0o644), "gputune can be written by others"),
            ((0, 0o755), (0, 0o755), (0, 0o664), ".yaml can be written by others"),
            ((0, 0o755), (0, 0o1777), (ME, 0o644), "gputune can be written by others"),
            ((ME, 0o755), (ME, 0o777), (ME, 0o644), "gputune can be written by others"),
            ((ME, 0o777), (ME, 0o700), (ME, 0o644), "above can be written by others"),
            ((STRANGER, 0o755), (ME, 0o700), (ME, 0o644), "above belongs to user 61235"),
            ((ME, 0o755), (ME, 0o700), (ME, 0o666), ".yaml can be written by others"),
            ((ME, 0o755), (ME, 0o700), (ME, 0o664), ".yaml can be written by others"),
        ],
        ids=["all of it", "its folder", "the file", "a folder of root's group", "a file of that", "a sticky one",
             "a folder of all", "above", "a stranger's above",
             "a file of all", "a file of another group"],
    )  # fmt: skip
    def test_nothing_that_others_may_have_written(self, shared: Path, above, folder, file, which: str) -> None:
        cache = give(shared / "above", *above)
        path = planted(give(cache / "gputune", *folder), file[0])
        path.chmod(file[1])
        if file == (ME, 0o664):
            os.chown(path, ME, STRANGER)
        value, [said] = taken(cache)
        assert value is None
        assert said.startswith(f"skipped {path}: {shared}")
        assert which in said

    def test_no_strangers_link_to_what_would_be_taken(self, shared: Path) -> None:
        cache = give(shared / "cache", ME, 0o755)
        planted(give(cache / "gputune", ME, 0o700), ME)
        (shared / "link").symlink_to(cache)
        os.chown(shared / "link", STRANGER, STRANGER, follow_symlinks=False)
        value, [said] = taken(shared / "link")
        assert value is None
        assert said.endswith(f": {shared / 'link'} belongs to user 61235")
        os.chown(shared / "link", ME, ME, follow_symlinks=False)
        assert taken(shared / "link") == [9, []]

    def test_root_takes_no_users(self, shared: Path) -> None:
        cache = give(shared / "cache", ME, 0o755)
        planted(give(cache / "gputune", ME, 0o700), ME)
        assert places.found(H200, {"XDG_CACHE_HOME": str(cache)}) is None

    def test_an_access_list_for_another_is_seen(self, shared: Path) -> None:
        path = planted(give(shared / "gputune", ME, 0o700), ME)
        entries = [(1, 6, -1), (2, 6, STRANGER), (4, 0, -1), (16, 6, -1), (32, 0, -1)]  # his rw, as setfacl writes it
        value = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
        try:
            os.setxattr(path, "system.posix_acl_access", value)
        except OSError as error:
            pytest.skip(f"no access lists here: {error}")
        assert taken(shared)[0] is None


@pytest.mark.real
def test_what_is_mounted_counts_as_it_was_mounted(shared: Path) -> None:
    """A Kubernetes emptyDir: of root, and everybody may write to it."""
    code = f"""
import os, sys
from making import H200, profile
from gputune.profile import places
path = places.keep(profile(), H200, {{"XDG_CACHE_HOME": {str(shared)!r}}})
print(bool(places.found(H200, {{"XDG_CACHE_HOME": {str(shared)!r}}})), oct(path.parent.stat().st_mode))
"""
    script = f'mount -t tmpfs -o mode=0777 small {shared} && exec "$@"'
    env = variables(shared, shared)
    words = ["unshare", "-m", "sh", "-c", script, "sh", *AS_ME, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    if done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(done.stderr)
    assert done.stdout == "True 0o40700\n", done.stderr


@pytest.mark.real
def test_in_a_user_namespace_roots_files_are_nobodys_and_so_are_a_strangers_in_tmp(shared: Path) -> None:
    """There root's files cannot be told from a stranger's: below a folder of all, such as /tmp, neither is taken."""
    own, theirs = give(shared, ME, 0o700) / "gputune", Path(f"{shared}-theirs")
    libc = ctypes.CDLL(None, use_errno=True)

    def look() -> Any:
        own.mkdir()
        libc.prctl(4, 1)  # PR_SET_DUMPABLE: /proc/self is this user's again
        if libc.unshare(0x10000000):  # CLONE_NEWUSER
            return os.strerror(ctypes.get_errno())
        Path("/proc/self/uid_map").write_text(f"0 {ME} 1")
        return [trust.fault(path) for path in (own, Path("/etc"), theirs)]

    try:
        give(theirs, STRANGER, 0o755)
        seen = as_user(ME, look)
    finally:
        theirs.rmdir()
    if isinstance(seen, str):
        pytest.skip(f"no user namespace here: {seen}")
    assert seen == [None, None, f"{theirs} belongs to user 65534"]


@pytest.mark.real
class TestKeeping:
    def keep(self, cache: Path, uid: int = ME) -> Any:
        return as_user(uid, lambda: places.keep(profile(), H200, {"XDG_CACHE_HOME": str(cache)}))

    def test_in_a_strangers_folder_nothing_is_written(self, shared: Path) -> None:
        precious = give(shared / "precious.txt", ME, 0o600)
        folder = give(shared / "gputune", STRANGER, 0o777)
        (folder / places.file_name(H200)).symlink_to(precious)
        assert self.keep(shared) == (
            f"MeasureError: {folder} belongs to user {STRANGER}; set XDG_CACHE_HOME to a folder of your own"
        )
        assert precious.read_text() == "precious\n"
        assert [path.name for path in folder.iterdir()] == [places.file_name(H200)]

    def test_nor_is_a_folder_made_in_one(self, shared: Path) -> None:
        cache = give(shared / "cache", STRANGER, 0o777)
        assert f"{cache} belongs to user {STRANGER}" in self.keep(cache / "deep")
        assert not list(cache.iterdir())

    def test_a_link_that_was_laid_before_the_folder_was_closed_is_replaced_itself(self, shared: Path) -> None:
        precious = give(shared / "precious.txt", ME, 0o600)
        folder = give(shared / "gputune", ME, 0o777)
        link = folder / places.file_name(H200)
        link.symlink_to(precious)
        os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
        assert self.keep(shared) == str(link)
        assert precious.read_text() == "precious\n"
        assert load(link) == profile()
        assert not link.is_symlink()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def test_what_a_stranger_wrote_there_lends_it_no_program(self, shared: Path) -> None:
        from making import program

        folder = give(shared / "gputune", ME, 0o777)
        path = folder / places.file_name(H200)
        save(profile(programs=(program(),)), path)
        os.chown(path, STRANGER, STRANGER)
        assert self.keep(shared) == str(path)
        assert load(path).programs == ()
        assert path.stat().st_uid == ME

    def test_of_those_above_it_no_folder_is_changed_and_new_ones_are_the_users_alone(self, shared: Path) -> None:
        cache = give(shared / "cache", ME, 0o755)
        self.keep(cache / "a" / "b")
        modes = [
            stat.S_IMODE(path.stat().st_mode) for path in (cache, cache / "a", cache / "a/b", cache / "a/b/gputune")
        ]
        assert modes == [0o755, 0o700, 0o700, 0o700]

    def test_a_start_that_is_to_probe_does_not_where_it_could_not_keep_it(self, shared: Path) -> None:
        folder = give(shared / "gputune", STRANGER, 0o777)
        planted(folder, STRANGER)
        env = variables(shared, shared)
        words = [*AS_ME, "-c", PROBE, "apply", "auto", "--", *SHOW]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, probes(env)) == (0, "None\n", [])
        assert f"gputune: not probed: {folder} belongs to user {STRANGER}; " in done.stderr


@pytest.mark.real
class TestTheLock:
    def test_a_strangers_is_not_waited_for_long(self, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert node_lock.STRANGERS_SECONDS <= 5
        monkeypatch.setattr(node_lock, "STRANGERS_SECONDS", 0.3)
        folder = give(shared / "gputune", ME, 0o755)
        lock = give(folder / "probe-node.lock", STRANGER, 0o666)

        def wait() -> Any:
            began, longest = time.monotonic(), []
            with node_lock.node_lock(folder, "probe", 600, longest.append, node="node") as turn:
                return [turn.held, turn.stranger, longest, time.monotonic() - began < 5]

        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert as_user(ME, wait) == [False, STRANGER, [0.3], True]


@pytest.mark.parametrize("what", ["a pipe", "a folder", "a link", "a socket"])
def test_something_else_in_the_place_of_the_lock_is_one_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    import socket

    path = tmp_path / "probe-node.lock"
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a folder":
        path.mkdir()
    elif what == "a link":
        path.symlink_to("/dev/zero")
    else:
        monkeypatch.chdir(tmp_path)
        socket.socket(socket.AF_UNIX).bind(path.name)
    with pytest.raises(OSError), node_lock.node_lock(tmp_path, "probe", 600, node="node"):  # noqa: PT011 - of several kinds
        pass


@pytest.mark.slow
def test_and_costs_no_start(tmp_path: Path) -> None:
    from making import python

    folder = tmp_path / "gputune"
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / f"probe-{node_lock.this_node()}.lock")
    env = variables(tmp_path, tmp_path)
    done = python("-c", PROBE, "apply", "auto", "--", *SHOW, env=env)
    assert (done.returncode, done.stdout, probes(env)) == (0, "None\n", [])
    assert "is not a regular file; " in done.stderr
    (folder / f"probe-{node_lock.this_node()}.lock").unlink()
    done = python("-c", PROBE, "apply", "auto", "--", *SHOW, env=env)
    assert json.loads(done.stdout)["settings"]["omp_threads"] == number(probes(env)[0])


class TestANamedProfile:
    @pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o1777, False), (0o775, False), (0o755, False)])
    def test_it_is_refused_in_a_folder_where_everybody_can_replace_it(
        self, tmp_path: Path, mode: int, refused: bool
    ) -> None:
        folder = tmp_path / "shared"
        (folder / "below").mkdir(parents=True)
        save(profile(), folder / "below" / "profile.yaml")
        folder.chmod(mode)
        said = f"can be replaced by everybody, in {folder}; chmod o-w {folder}"
        with pytest.raises(ProfileError, match=said) if refused else nullcontext():
            load(folder / "below" / "profile.yaml")

    def test_by_a_relative_path_and_through_a_link_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "shared"
        folder.mkdir()
        (tmp_path / "own").mkdir()
        save(profile(), tmp_path / "own" / "profile.yaml")
        (folder / "link.yaml").symlink_to(tmp_path / "own" / "profile.yaml")
        folder.chmod(0o777)
        monkeypatch.chdir(tmp_path / "own")
        load("profile.yaml")
        for path in ("../shared/link.yaml", folder / "link.yaml"):
            with pytest.raises(ProfileError, match="can be replaced by everybody"):
                load(path)


def test_a_way_in_a_circle_is_no_way(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    assert "Too many levels" in str(trust.fault(tmp_path / "one"))
    with pytest.raises(MeasureError, match="Too many levels"):
        places.create_folder(tmp_path / "one" / "gputune")
