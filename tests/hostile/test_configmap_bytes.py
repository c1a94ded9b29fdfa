"""`gputune deploy kubernetes configmap` prints the very bytes that it checked, even of a file that changes then."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from forked import gputune
from making import environ, profile, written

CONFIGMAP = ("deploy", "kubernetes", "configmap", "--profile")
IN_CLOSE_NOWRITE = 0x10


def held(manifest: str) -> bytes:
    text: str = yaml.safe_load(manifest)["data"]["profile.yaml"]
    return text.encode()


@pytest.mark.slow
def test_a_file_that_is_replaced_as_soon_as_it_was_read(tmp_path: Path) -> None:
    path = Path(written(tmp_path, profile()))
    checked = path.read_bytes()
    other = tmp_path / "other"
    other.write_text("what nobody checked: 1\n")
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init()
    libc.inotify_add_watch(watch, str(path).encode(), IN_CLOSE_NOWRITE)
    words = [sys.executable, "-m", "gputune", *CONFIGMAP, str(path)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ())
    os.read(watch, 4096)
    other.replace(path)
    os.close(watch)
    assert held(child.communicate(timeout=60)[0]) == checked


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "as it was written": lambda text: text,
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "lines of Windows": lambda text: text.replace(b"\n", b"\r\n"),
    "empty lines at the end": lambda text: text + b"\n\n \n",
    "no line break at the end": lambda text: text.rstrip(b"\n"),
    "characters of all planes": lambda text: text + "# \u00e9 \u202e \t \U0001f600\n".encode(),
    "what templates replace": lambda text: b"# $(HOME) {{ x }} ${y}\n" + text,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_byte_arrives(change: str, tmp_path: Path) -> None:
    path = Path(written(tmp_path, profile()))
    path.write_bytes(CHANGES[change](path.read_bytes()))
    done = gputune(*CONFIGMAP, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert held(done.stdout) == path.read_bytes()
