"""The bench process's own temporary folder, which its keeper removes with what killed processes left there."""

import getpass
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gputune.host.keeper import VARIABLE

_CACHE = "TORCHINDUCTOR_CACHE_DIR"


def own_folder() -> str:
    """The folder that the keeper made, empty where it could not; multiprocessing's sockets are there from now on."""
    folder = os.environ.pop(VARIABLE, "")
    if folder:
        # The key under which `multiprocessing.util.get_temp_dir` looks; forked and spawned processes inherit it.
        multiprocessing.current_process()._config["tempdir"] = folder  # type: ignore[attr-defined]
    return folder


@contextmanager
def temporary_files_in(folder: str) -> Iterator[None]:
    """Let all libraries create their temporary files there. What torch.compile keeps stays where it is.

    It is not meant for the user's own code, which may have its data in the folder that TMPDIR names.
    """
    if not folder:
        yield
        return
    before = {name: os.environ.get(name) for name in ("TMPDIR", _CACHE)}
    with suppress(OSError, KeyError):
        os.environ.setdefault(_CACHE, f"{tempfile.gettempdir()}/torchinductor_{getpass.getuser()}")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = None
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
