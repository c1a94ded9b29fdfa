"""What programs do with their files, each habit in a folder of its own, in which an earlier run has left some.

With a habit's name it is that one alone. Each prints what it saw; a plain run prints the same.
"""

import glob
import io
import logging
import os
import pickle
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import zipfile
from os import replace as renamed
from pathlib import Path

OLD = ("last.pt", "prev.pt", "old_1.pt", "old_2.pt")
HERE = os.getcwd()


def save(path, text="new"):
    import torch

    torch.save({"text": text}, path)


def saved(path):
    import torch

    return torch.load(path)["text"]


def rotates():
    os.replace("ck/last.pt", "ck/prev.pt")
    save("ck/last.pt")
    return open("ck/prev.pt").read(), saved("ck/last.pt"), sorted(os.listdir("ck"))


def rotates_after_a_save():
    save("ck/step1.pt")
    renamed("ck/last.pt", "ck/prev.pt")
    return open("ck/prev.pt").read(), os.path.exists("ck/last.pt")


def saves_through_a_file_object():
    with open("ck/last.pt", "wb") as file:
        save(file)
    return saved("ck/last.pt")


def saves_through_a_temporary_file():
    number, path = tempfile.mkstemp(dir="ck")
    os.close(number)
    save(path)
    os.replace(path, "ck/last.pt")
    with tempfile.NamedTemporaryFile(dir="ck", suffix=".tmp") as file:
        file.write(b"x")
    return saved("ck/last.pt"), sorted(os.listdir("ck"))


def renames_what_it_finds():
    save("ck/a.pt")
    for name in sorted(glob.glob("ck/*last*")):
        os.rename(name, f"{name}.old")
    return sorted(os.listdir("ck"))


def truncates():
    os.truncate("ck/last.pt", 2)
    with open("ck/prev.pt", "r+b") as file:
        file.truncate(1)
    return os.path.getsize("ck/last.pt"), open("ck/prev.pt").read()


def empties_the_folder():
    shutil.rmtree("ck")
    gone = os.path.exists("ck/last.pt"), os.path.isdir("ck")
    os.makedirs("ck")
    save("ck/last.pt")
    return gone, os.listdir("ck"), saved("ck/last.pt")


def removes_by_a_descriptor():
    folder = os.open("ck", os.O_RDONLY)
    os.remove("last.pt", dir_fd=folder)
    os.rename("prev.pt", "last.pt", src_dir_fd=folder, dst_dir_fd=folder)
    names = sorted(os.listdir(folder))
    os.close(folder)
    return names, open("ck/last.pt").read()


def moves():
    save("ck/a.pt")
    os.makedirs("archive/deep")
    shutil.move("ck/a.pt", "archive/")
    shutil.move("ck/last.pt", "archive/deep")
    Path("ck/prev.pt").rename("archive/prev.pt")
    return [(top, sorted(folders), sorted(names)) for top, folders, names in sorted(os.walk("."))]


def renames_a_folder():
    os.rename("ck", "ck_before")
    os.makedirs("ck")
    save("ck/last.pt")
    return sorted(os.listdir("ck")), sorted(os.listdir("ck_before")), open("ck_before/last.pt").read()


def renames_a_folder_of_its_own():
    folder = tempfile.mkdtemp(dir="ck")
    save(f"{folder}/a.pt")
    os.rename(folder, "ck/step1")
    return os.path.isdir("ck/step1"), os.listdir("ck/step1"), saved("ck/step1/a.pt")


def saves_to_a_folder_that_is_on_the_same_disk_as_the_temporary_one():
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("new")
    os.rename(file.name, "ck/last.pt")
    folder = tempfile.mkdtemp()
    Path(folder, "a").touch()
    os.replace(folder, "ck/folder")
    return open("ck/last.pt").read(), os.listdir("ck/folder"), os.path.exists(folder)


def copies():
    save("ck/last.pt")
    shutil.copy("ck/last.pt", "ck/best.pt")
    shutil.copy2("ck/prev.pt", "ck/kept.pt")
    shutil.copytree("ck", "ck2")
    return saved("ck/best.pt"), saved("ck2/best.pt"), open("ck2/kept.pt").read(), sorted(os.listdir("ck2"))


def looks():
    save("ck/last.pt")
    newest = max(glob.glob("ck/*.pt"), key=os.path.getmtime)
    seen = sorted(one.name for one in Path("ck").iterdir())
    entries = sorted((one.name, one.path, one.is_file(), one.is_symlink()) for one in os.scandir("ck"))
    deep = sorted(str(path) for path in Path().rglob("*.pt"))
    return newest, seen, entries, deep, os.access("ck/last.pt", os.R_OK), os.path.samefile("ck/last.pt", "./ck/last.pt")


def touches():
    save("ck/last.pt")
    for name in ("ck/last.pt", "ck/prev.pt"):
        os.chmod(name, 0o640)
        os.utime(name, (5, 5))
    Path("ck/old_1.pt").touch()
    Path("ck/mark").touch()
    return oct(os.stat("ck/prev.pt").st_mode), os.path.getmtime("ck/last.pt"), Path("ck/mark").exists()


def syncs():
    save("ck/last.pt")
    number = os.open("ck/last.pt", os.O_RDONLY)
    os.fsync(number)
    os.close(number)
    with open("ck/last.pt", "r+b") as file:
        os.fsync(file.fileno())
    return saved("ck/last.pt")


def changes_by_a_descriptor():
    number = os.open("ck/last.pt", os.O_RDONLY)
    os.fchmod(number, 0o600)
    os.utime(number, (7, 7))
    os.close(number)
    return oct(os.stat("ck/last.pt").st_mode), os.path.getmtime("ck/last.pt")


def links():
    save("ck/step.pt")
    os.symlink("step.pt", "ck/latest")
    os.symlink(os.path.abspath("ck/prev.pt"), "ck/whole")
    os.link("ck/last.pt", "ck/hard.pt")
    with open("ck/hard.pt", "a") as file:
        file.write(" and more")
    return os.path.islink("ck/latest"), os.readlink("ck/latest"), saved("ck/latest"), open("ck/whole").read()


def writes_through_a_link_of_the_users():
    save("linked/a.pt")
    save("linked/last.pt")
    target = os.path.realpath("linked/a.pt")
    return os.path.relpath(target, HERE), saved("ck/a.pt"), saved(target), saved("linked/last.pt")


def appends():
    with open("ck/last.pt", "a") as file:
        file.write(" and more")
    handler = logging.FileHandler("ck/prev.pt")
    handler.emit(logging.makeLogRecord({"msg": "a line"}))
    handler.close()
    return open("ck/last.pt").read(), Path("ck/prev.pt").read_text()


def packs():
    save("ck/last.pt")
    with tarfile.open("ck/all.tar", "w") as packed:
        packed.add("ck/last.pt")
        packed.add("ck/prev.pt")
    with zipfile.ZipFile("ck/all.zip", "w") as zipped:
        zipped.write("ck/last.pt")
    with tarfile.open("ck/all.tar") as packed:
        names = sorted(packed.getnames())
    shutil.make_archive("ck/whole", "zip", "ck")
    return names, zipfile.ZipFile("ck/all.zip").namelist(), os.path.exists("ck/whole.zip")


def works_in_a_folder_of_its_own():
    os.makedirs("runs/1")
    os.chdir("runs/1")
    save("a.pt")
    seen = os.path.relpath(os.getcwd(), HERE), os.listdir(), saved(os.path.abspath("a.pt")), os.path.exists("../../ck")
    os.chdir("../..")
    return seen, os.listdir("runs/1")


def keeps_a_database():
    with sqlite3.connect("ck/runs.db") as base:
        base.execute("create table if not exists runs (name)")
        base.execute("insert into runs values ('a')")
        count = base.execute("select count(*) from runs").fetchone()
    base.close()
    return count


def makes_errors():
    seen = []
    os.makedirs("full/a")
    for function, *words in (
        (os.remove, "ck/none"), (os.rmdir, "ck"), (os.mkdir, "ck"), (open, "ck/none"), (open, "ck", "w"),
        (open, "none/a", "w"), (open, "ck/last.pt", "x"), (os.rename, "ck/none", "ck/a"), (os.rmdir, "ck/last.pt"),
        (os.rename, "ck/last.pt", "full"), (os.rename, "full", "ck"), (os.remove, "ck"), (os.listdir, "none"),
    ):  # fmt: skip
        try:
            function(*words)
        except OSError as error:
            seen.append((function.__name__, type(error).__name__, error.filename))
    return seen


def writes_elsewhere():
    with open(os.devnull, "w") as file:
        file.write("x")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as file:
        file.write("x")
    os.close(reader)
    buffer = io.BytesIO()
    save(buffer)
    return pickle.loads(pickle.dumps(os.remove)) is os.remove, open is io.open


HABITS = {name: one for name, one in list(globals().items()) if callable(one) and one.__module__ == __name__}
HABITS = {name: one for name, one in HABITS.items() if name not in ("save", "saved", "renamed", "Path")}

if __name__ == "__main__":
    for name, habit in HABITS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        os.makedirs(name, exist_ok=True)
        os.chdir(name)
        HERE = os.getcwd()
        try:
            print(name, habit())
        except Exception as error:
            print(name, "raised", type(error).__name__, error)
        os.chdir(os.path.join(HERE, ".."))
