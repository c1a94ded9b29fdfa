"""Scripts as they run plainly, and with everything put in that fits."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from forked import ran, server
from making import environ, not_aborted

from gputune.live.applied import Applied
from gputune.runtime.environment import SHIM

HERE = Path(__file__).parent
SECONDS = 120
ALL: dict[str, Any] = {"amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True}
"""What is put in; `compile` only where a script is about it, since that takes seconds."""
SAID, REPORT = "gputune: ", '{"gputune":'
"""How the lines begin that are gputune's, and its report."""
NO_GPU = "No CUDA runtime is found"
"""What torch for CUDA says without a GPU when it compiles for the first time, whoever asked for it."""


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str
    """Without gputune's lines and its report."""
    said: tuple[str, ...]
    """gputune's lines."""
    rows: Mapping[str, Applied]
    """What the report of rank 0, or else the last one, says of each setting: what became of it."""


def environment(
    values: Mapping[str, Any] | None, device: str = "cpu", flags: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, str]:
    """What `gputune apply` exports, with these flags of torch's and this advice for every model; nothing more than a
    user has, without advice.
    """
    # The folder of compiled code is common: as is usual, only the first run of a script compiles its kernels.
    env = {name: value for name, value in environ().items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    del env["PYTHONWARNINGS"]
    if device == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""  # DataParallel would move to the GPU, and backward fail in a forked child
    if values is None:
        return env
    payload = {"settings": dict(flags), "advice": {"device": device, "general": dict(values)}}
    return {**env, "GPUTUNE_APPLY": json.dumps(payload), "GPUTUNE_REPORT": "json"}


def forked(python: str, script: str, folder: Path, env: Mapping[str, str], argv: Sequence[str] = ()) -> Ended:
    private = str(Path(SHIM).with_name("private.py"))
    given = {"script": str(HERE / "scripts" / f"{script}.py"), "argv": list(argv), "private": private}
    done = ran(_server(python), given, env, folder)
    return _ended(done.returncode, done.stdout, done.stderr)


def fresh(  # noqa: PLR0917 - as a command has them
    python: str, script: str, folder: Path, env: Mapping[str, str], words: Sequence[str], argv: Sequence[str]
) -> Ended:
    """Run a script in a process of its own, through the real shim; `words` come before it. One that torch itself aborts
    as it exits is run again, up to twice.
    """
    path = {"PYTHONPATH": SHIM} if "GPUTUNE_APPLY" in env else {}
    command = [python, *words, str(HERE / "scripts" / f"{script}.py"), *argv]

    def once() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env={**env, **path}, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    done = not_aborted(once)
    return _ended(done.returncode, done.stdout, done.stderr)


@cache
def _server(python: str) -> Any:
    return server(python, runs="torch", env=environment(None))


def _ended(code: int, stdout: str, stderr: str) -> Ended:
    lines = [line for line in stderr.splitlines(keepends=True) if NO_GPU not in line]
    reports = [json.loads(line)["gputune"] for line in lines if line.startswith(REPORT)]
    first = next((one for one in reports if one["rank"] == 0), reports[-1] if reports else {"settings": []})
    return Ended(
        code=code,
        stdout=stdout,
        stderr="".join(line for line in lines if not line.startswith((SAID, REPORT))),
        said=tuple(line.removeprefix(SAID).rstrip() for line in lines if line.startswith(SAID)),
        rows={row["setting"]: Applied.from_plain(row) for row in first["settings"]},
    )
