"""How a tune leaves the user's files as they are: the program runs above copies of the user's folders, where the kernel
permits that.
"""

import getpass
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gputune.host import keeper, overlay
from gputune.host.kept import isolated_python

TRIAL_SECONDS = 20.0
"""How long to try whether the kernel permits it: a network file system that has gone away never answers."""
MEMORY_SHARE = 0.5
"""The most of the free memory that is written to, where no disk can take what the program writes. With more, the
program may be left too little."""
NAMESPACE, WRITTEN = "namespace", "written"
"""The files in a start's private folder: the name of the namespace, and what was written outside, a path a line."""
COPIES = "copies"
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


def caches(environ: Mapping[str, str]) -> list[str]:
    """The folders of this user that a program may write to, existing or not."""
    named = [environ.get(name, "") for name in CACHES] + [f"{environ.get('HOME', '')}/{name}" for name in _BELOW_HOME]
    with suppress(OSError, KeyError):
        named.append(compiled_code())
    return [path for path in (*named, _MPS) if Path(path).is_absolute()]


def words_above_copies(
    folder: Path, environ: Mapping[str, str], memory_bytes: int | None, *, is_trial: bool = False
) -> list[str]:
    """The words before a command with which it runs above copies, in the private folder, of the user's folders."""
    order = overlay.Order(
        folder=str(folder / COPIES),
        memory_bytes=int(MEMORY_SHARE * (memory_bytes or 0)),
        unchanged=[str(folder), *caches(environ)],
        mark=str(folder / NAMESPACE),
        is_trial=is_trial,
    )
    return [*isolated_python(), overlay.__file__, json.dumps(order._asdict())]


def why_no_copies(folder: Path, command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Why the command cannot run above copies of the user's folders; empty if it can."""
    words = [*words_above_copies(folder, environ, 1 << 30, is_trial=True), *command]
    try:
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
