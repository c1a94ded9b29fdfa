"""How a tune leaves the user's files as they are: the program runs above copies of the user's folders, where the kernel
permits that.
"""

import getpass
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gputune.host import keeper, overlay
from gputune.host.kept import isolated_python
from gputune.host.mount_plan import Disk, mounts, paths, plan
from gputune.host.overlay import is_below, is_within

TRIAL_SECONDS = 20.0
"""How long to try whether the kernel permits it: a network file system that has gone away never answers."""
MEMORY_SHARE = 0.5
"""The most of the free memory that is written to, where no disk can take what the program writes. With more, the
program may be left too little."""
NAMESPACE, WRITTEN = "namespace", "written"
"""The files in a start's private folder: the name of the namespace, and what was written outside, a path a line."""
COPIES, ORDER = "copies", "order"
CACHES = (
    "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_HOME", "TORCH_EXTENSIONS_DIR", "HF_HOME",
    "HF_HUB_CACHE", "HF_DATASETS_CACHE", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX",
    "CUDA_MPS_PIPE_DIRECTORY",
)  # fmt: skip
"""Variables that name folders whose purpose is to stay: without them each start would compile and download anew. The
last holds the pipes of NVIDIA's server of several processes."""
_BELOW_HOME = (".cache", ".triton", ".nv")
_MPS = "/tmp/nvidia-mps"


def compiled_code() -> str:
    """The folder that torch keeps compiled code in unless a variable names one. Raises OSError or KeyError."""
    return f"{tempfile.gettempdir()}/torchinductor_{getpass.getuser()}"


def caches(environ: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """The folders of this user that a program may write to, existing or not; none that holds the user's work: of one in
    which something lies that the command names, the folders that do not lead there.
    """
    named = [environ.get(name, "") for name in CACHES] + [f"{environ.get('HOME', '')}/{name}" for name in _BELOW_HOME]
    with suppress(OSError, KeyError):
        named.append(compiled_code())
    work = _work(environ)
    real = [os.path.realpath(path) for path in (*named, _MPS) if Path(path).is_absolute()]
    links = [linked for path in dict.fromkeys(real) for linked in _linked(path)]
    real += [path for path in links if not is_within(path, work[0])]
    able = [path for path in real if not any(is_within(own, path) for own in work)]
    used = [os.path.realpath(path) for path in paths(command[1:], work[0])]  # an interpreter may lie in one
    return list(dict.fromkeys(one for path in able for one in _without(path, used)))


def _linked(cache: str) -> list[str]:
    """The folders that the links in a cache lead to: what is downloaded there is to stay too."""
    with suppress(OSError):
        return [os.path.realpath(one.path) for one in os.scandir(cache) if one.is_symlink() and one.is_dir()]
    return []


def _without(folder: str, used: Sequence[str]) -> list[str]:
    """The folder, or, where something in it is used, the folders in it that hold nothing of that."""
    if not (inner := [path for path in used if is_below(path, folder)]):
        return [folder]
    return [one for below in Disk().folders(folder) if below not in inner for one in _without(below, inner)]


def _work(environ: Mapping[str, str]) -> tuple[str, str]:
    return str(Path.cwd()), os.path.realpath(environ.get("HOME") or "/")


def words_above_copies(
    folder: Path,
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    memory_bytes: int | None = None,
    is_trial: bool = False,
) -> list[str]:
    """The command with what comes before it so that it runs above copies, in a private folder, of the user's folders.
    Raises OSError.
    """
    here, home = work = _work(environ)
    unchanged = [path for path in (os.path.realpath(folder), *caches(environ, command)) if Path(path).is_dir()]
    seen = mounts(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"))
    used = [here, home, "/var/tmp", *paths(command, here)]
    order = overlay.Order(
        folder=str(folder / COPIES),
        memory_bytes=int(MEMORY_SHARE * (memory_bytes or 0)),
        unchanged=unchanged,
        needed=[path for path in work if path != "/" and Path(path).is_dir() and os.access(path, os.W_OK)],
        steps_of_root=plan(seen, Disk(), unchanged, is_root=True),
        steps_of_user=plan(seen, Disk(), unchanged, is_root=False, used=used),
        mark=str(folder / NAMESPACE),
        is_trial=is_trial,
    )
    (folder / ORDER).write_text(json.dumps(order._asdict()))
    return [*isolated_python(), overlay.__file__, str(folder / ORDER), *command]


def why_no_copies(folder: Path, command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Why the command cannot run above copies of the user's folders; empty if it can."""
    try:
        words = words_above_copies(folder, command, environ, memory_bytes=1 << 30, is_trial=True)
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, env=dict(environ), timeout=TRIAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "a file system did not answer"
    except OSError as error:
        return str(error.strerror)
    finally:
        keeper.remove(str(folder / COPIES))
    return "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
