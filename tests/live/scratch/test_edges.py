"""Ways by which a program could reach the user's own files, each as a small script."""

import socket
import sqlite3
from contextlib import chdir
from textwrap import dedent

import pytest

from .conftest import Users, digest

pytestmark = pytest.mark.slow


def run(users: Users, source: str, **more: str) -> str:
    """What a script prints, which leaves the user's files as they are."""
    script = users.home.parent / "script.py"
    script.write_text(dedent(source))
    before = digest(users.home)
    printed = users.run(script, when="before", **more)
    assert digest(users.home) == before
    return printed


def test_a_file_that_is_emptied_through_a_descriptor(users: Users) -> None:
    (users.folder / "log").write_text("old")
    source = """
        import os
        file = os.open("log", os.O_WRONLY | os.O_TRUNC)
        os.write(file, b"new")
        print(open("log").read())
        try:
            os.open("none", os.O_WRONLY | os.O_TRUNC)
        except FileNotFoundError as error:
            print(error.filename)
    """
    assert run(users, source) == "new\nnone\n"


def made_database(users: Users) -> None:
    with sqlite3.connect(users.folder / "u.db") as database:
        database.execute("create table t(x)")
        database.execute("insert into t values (1)")
    database.close()


def test_a_database_by_its_uri(users: Users) -> None:
    made_database(users)
    source = """
        import os, sqlite3
        for uri in ("file:u.db?mode=rw", f"file://{os.getcwd()}/u.db", "file:u%2Edb"):
            with sqlite3.connect(uri, uri=True) as database:
                database.execute("insert into t values (2)")
                print(database.execute("select count(*) from t").fetchone()[0])
            database.close()
        print(sqlite3.connect("file:x?mode=memory", uri=True).execute("select 1").fetchone(), os.path.exists("x"))
    """
    assert run(users, source) == "2\n3\n4\n(1,) False\n"


def test_a_database_with_its_last_changes(users: Users) -> None:
    made_database(users)
    owner = sqlite3.connect(users.folder / "u.db")
    owner.execute("pragma journal_mode=wal")
    owner.execute("insert into t values (2)")
    owner.commit()
    assert (users.folder / "u.db-wal").stat().st_size
    source = """
        import sqlite3
        for _ in range(2):
            database = sqlite3.connect("u.db")
            print(database.execute("select count(*) from t").fetchone()[0])
            database.close()
    """
    assert run(users, source) == "2\n2\n"
    owner.close()


BEGUN = """
import os, tempfile, sqlite3
from _gputune.live.scratch import redirect
from _gputune.live.scratch._outside import Outside
from _gputune.live.scratch._view import lying_in
redirect({scratch!r}, [{kept!r}])
Outside({kept!r} + "/names", lying_in([{kept!r}])).follow()
"""
"""Begins a script as a tune does, which names at its end what was written to the user's folders all the same."""


def named(users: Users, source: str) -> list[str]:
    """The files of the user's folder that are named; the temporary folder is none of the user's."""
    kept = users.scratch.parent / "kept"
    kept.mkdir()
    script = kept / "script.py"
    script.write_text(BEGUN.format(kept=str(kept), scratch=str(kept / "scratch")) + dedent(source))
    users.run(script, TMPDIR=str(kept))
    names = kept / "names"
    return [line.removeprefix(f"{users.folder}/") for line in names.read_text().splitlines()] if names.exists() else []


def test_what_lies_elsewhere_is_not_named(users: Users) -> None:
    source = """
        with tempfile.TemporaryDirectory() as folder:
            open(f"{folder}/x.bin", "w").close()
            at = os.open(folder, os.O_RDONLY)
            open("y.bin", "w", opener=lambda path, flags: os.open(path, flags, dir_fd=at)).close()
            os.rename("y.bin", "z.bin", src_dir_fd=at, dst_dir_fd=at)
            assert os.listdir(folder)
        sqlite3.connect(":memory:")
        sqlite3.connect("file:a.db", uri=True).execute("create table t(x)")
    """
    assert named(users, source) == []


def test_what_fails_is_not_named(users: Users) -> None:
    for name in ("there", "gone", "full/inner"):
        (users.folder / name).parent.mkdir(exist_ok=True)
        (users.folder / name).touch()
    source = """
        import errno, io, posix

        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        for number, call, *inputs in [
            (errno.ENOENT, posix.unlink, "none"),
            (errno.ENOENT, posix.rename, "none", "other"),
            (errno.ENOENT, posix.truncate, "none", 0),
            (errno.ENOTEMPTY, posix.rmdir, "full"),
            (errno.EEXIST, posix.link, "there", "gone"),
            (errno.EEXIST, posix.symlink, "there", "gone"),
            (errno.EEXIST, posix.open, "there", new),
            (errno.ENOENT, io.FileIO, "nowhere/file", "w"),
            (errno.EISDIR, io.FileIO, "full", "w"),
            (0, posix.unlink, "gone"),
            (0, io.FileIO, "made", "w"),
            (0, io.FileIO, "there", "a"),
        ]:
            try:
                call(*inputs)
            except OSError as error:
                assert error.errno == number, inputs
            else:
                assert not number, inputs
    """
    assert named(users, source) == ["gone", "made", "there"]


def test_what_a_statement_writes_is_named(users: Users) -> None:
    source = """
        database = sqlite3.connect("u.db")
        database.execute("attach 'v.db' as v")
        database.execute("vacuum into ?", ("w.db",))
    """
    assert named(users, source) == ["v.db", "w.db"]


def test_a_module_that_the_program_has_written_is_imported_and_leaves_no_compiled_code(users: Users) -> None:
    (users.folder / "state.py").write_text("RUN = 7\n")
    (users.folder / "package").mkdir()
    source = """
        import importlib, os, sys

        sys.path.insert(0, os.getcwd())
        sys.dont_write_bytecode = False
        for name, text in {"state": "RUN = 8", "fresh": "RUN = 9", "package.inner": "RUN = 10"}.items():
            with open(name.replace(".", "/") + ".py", "w") as file:
                file.write(text)
            print(importlib.import_module(name).RUN)
        os.remove("fresh.py")
        del sys.modules["fresh"]
        try:
            import fresh
        except ImportError as error:
            print(error)
        print(len(os.listdir("__pycache__")))
    """
    assert run(users, source) == "8\n9\n10\nNo module named 'fresh'\n2\n"


def test_a_database_whose_library_puts_an_end_behind_its_name(users: Users) -> None:
    """This Python may have none of these libraries, so one stands in for them."""
    (users.folder / "metrics.db").write_text("1 ")
    made = users.scratch.parent / "libraries" / "dbm"
    made.mkdir(parents=True)
    (made / "__init__.py").touch()
    (made / "ndbm.py").write_text("open = lambda name, flag='r', mode=0: __import__('io')._file(name + '.db', flag)")
    source = f"""
        import io, sys
        from _io import open as in_c

        io._file = lambda name, flag: in_c(name, {{"c": "a+", "w": "r+", "n": "w", "r": "r"}}[flag])
        sys.path.insert(0, {str(made.parent)!r})
        from dbm import ndbm

        for flag, text in [("c", "2 "), ("c", "3 "), ("r", ""), ("n", "4 "), ("r", "")]:
            with ndbm.open("metrics", flag) as file:
                print(file.read() if flag == "r" else file.write(text), end=";")
    """
    assert run(users, source) == "2;2;1 2 3 ;2;4 ;"


def test_what_torch_writes_in_c(users: Users) -> None:
    (users.folder / "numbers").write_bytes(b"\1" * 16)
    (users.folder / "store").touch()
    source = """
        import os, torch
        from torch.package import PackageExporter, PackageImporter

        torch.from_file("numbers", shared=True, size=4).zero_()
        print(torch.from_file("numbers", size=4, dtype=torch.float32).tolist())
        torch.UntypedStorage.from_file("numbers", True, 16).fill_(2)
        torch.FloatStorage.from_file("made", True, 4).fill_(3)
        print(open("numbers", "rb").read(2), len(open("made", "rb").read()))
        with PackageExporter("package.pt") as package:
            package.save_pickle("inner", "one.pkl", [1])
        print(PackageImporter("package.pt").load_pickle("inner", "one.pkl"))
        writer = torch._C.PyTorchFileWriter("plain.zip")
        writer.write_record("one", b"1", 1)
        writer.write_end_of_file()
        print(torch._C.PyTorchFileReader("plain.zip").has_record("one"))
        observer = torch.profiler.ExecutionTraceObserver().register_callback("execution.json")
        with torch.profiler.profile(
            execution_trace_observer=observer, on_trace_ready=torch.profiler.tensorboard_trace_handler("traces")
        ) as profile:
            torch.ones(2).sum()
        with torch.autograd.profiler.profile() as profile:
            torch.ones(2).sum()
        profile.export_chrome_trace("other.json")
        print(sorted(name for name in os.listdir() if name.endswith("json")), len(os.listdir("traces")))
        store = torch.distributed.FileStore("store", 1)
        store.set("key", "value")
        print(os.path.getsize("store") > 0, isinstance(store, torch.distributed.FileStore))
        traced = torch.jit.trace(torch.nn.Linear(2, 1), torch.ones(1, 2))
        traced.save("traced.pt")
        traced._save_for_lite_interpreter("mobile.pt")
        torch.jit.script(torch.nn.functional.relu).save("function.pt")
        print(type(torch.jit.load("traced.pt")).__name__, os.path.exists("mobile.pt"), os.path.exists("function.pt"))
    """
    assert run(users, source).splitlines() == [
        "[0.0, 0.0, 0.0, 0.0]", r"b'\x02\x02' 16", "[1]", "True", "['execution.json', 'other.json'] 1",
        "True True", "RecursiveScriptModule True True",
    ]  # fmt: skip


@pytest.mark.parametrize("length", [1, 100])
def test_a_socket_that_is_bound_again(users: Users, length: int) -> None:
    (users.folder / "inner").mkdir()
    with chdir(users.folder / "inner"), socket.socket(socket.AF_UNIX) as listener:
        listener.bind("ctl.sock")
    source = f"""
        import os, socket

        os.chdir("inner")
        folder = "x" * {length}
        os.mkdir(folder)
        os.remove("ctl.sock")
        for path in ("ctl.sock", folder + "/s"):
            listener, caller = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen()
            print(listener.getsockname() == path, os.path.exists(path))
            caller.connect(path)
            listener.accept()[0].sendall(b"heard")
            print(caller.recv(5))
            try:
                socket.socket(socket.AF_UNIX).bind(path)
            except OSError as error:
                print(error.strerror)
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.bind("datagrams")
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"sent", "datagrams")
        print(receiver.recv(4))
    """
    assert run(users, source) == "True True\nb'heard'\nAddress already in use\n" * 2 + "b'sent'\n"
