"""The entry into this process: applies GPUTUNE_APPLY to torch, and says at exit what became of it.

It is loaded below the private parent (`private.py`): by the shim right after torch was imported, and by
`gputune.apply()`. Callers get rows as plain dictionaries (`Applied.plain`). It writes nothing to stdout and does not
touch CUDA.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import knobs
from . import flags, payload, say, write

if TYPE_CHECKING:
    from ..knobs import Value
    from .advice import Advice
    from .applied import Applied
    from .injection import Injection

REPORT = "GPUTUNE_REPORT"
"""If 1, or json, every Python that imported torch reports on stderr at exit what was applied and what changed later."""

_injections: list[Injection] = []
"""The one injection of this process, once there is one."""
_elsewhere: dict[str, Sequence[str]] = {}
"""By program that was tuned on another machine, how that differs."""
reads = flags.reads


def run(text: str) -> None:
    """Apply the payload of GPUTUNE_APPLY. Never raises: a fault becomes a line on stderr."""
    try:
        carried = payload.parse(text)
        for name, value in carried.settings.items():
            row = flags.set_at_start(name, value, carried.torch)
            if row.status == "failed":
                say(f"{name} was not applied: {row.why}")
            _watch(name)
        _elsewhere.update(carried.elsewhere)
        if carried.advice:
            _inject(carried.advice)
        if carried.is_tuned:
            _begin()
    except Exception as error:
        say(f"settings were not applied: {type(error).__name__}: {error}")
        return
    if os.environ.get(REPORT) in ("1", "json"):
        import atexit

        atexit.register(_report)


def apply(name: str, value: Value) -> dict[str, Any]:
    """Set one value in this running process. Returns its row."""
    row = flags.set_now(name, value)
    _watch(name)
    return row.plain


def _watch(name: str) -> None:
    """Spread the nets under TF32, if that is the setting."""
    if name == "matmul_precision" and flags.is_ours(name, "tf32"):
        from .nets import line_search, linear_algebra, slower_tf32

        line_search.watch()
        linear_algebra.watch()
        if payload.TUNE not in os.environ:  # which times it itself
            slower_tf32.watch()


def inject(advice: Mapping[str, Any]) -> None:
    """Turn on what was advised (`Advice.plain`) in this program's models and DataLoaders, once in a process."""
    from .advice import Advice

    _inject(Advice.from_plain(advice))


def _inject(advice: Advice) -> None:
    if _injections:
        return
    from ..resources.files import Files
    from . import loader
    from .injection import Injection
    from .nets import cudnn_search
    from .outcome import too_old

    def set_flag(name: str, value: Value) -> Applied:
        row = flags.set_for_program(name, value, payload.exported_by_us(os.environ))
        _watch(name)
        return row

    injection = Injection(advice, set_flag, say, is_tuned=payload.TUNE in os.environ)
    _injections.append(injection)
    injection.start()
    changes_calls = any(knobs.load(name).IN_CALLS for name in injection.rows) and not too_old()
    if changes_calls and payload.TUNE not in os.environ:
        cudnn_search.watch()
    loader.LoaderSettings(advice, Files(), injection.note).follow()


def _begin() -> None:
    """Begin a run of a program that is being tuned, or end: it must not write where it should not."""
    from .tuning import run

    try:
        run.start(os.environ[payload.TUNE])
    except Exception as error:
        say(f"this run could not be begun: {type(error).__name__}: {error}")
        os._exit(1)


def now() -> list[dict[str, Any]]:
    """The rows of all settings as they are now: `changed-later` if the program has set something else since."""
    turned_on = [row for injection in _injections for name, row in injection.rows.items() if name not in flags.rows]
    return [row.plain for row in (*flags.rows_now(), *turned_on)]


def _report() -> None:
    rank = os.environ.get("RANK")
    if os.environ.get(REPORT) == "json":
        number = int(rank) if rank and rank.isdecimal() else None
        said = {"pid": os.getpid(), "rank": number, "settings": now(), "tuned_elsewhere": _elsewhere}
        report = json.dumps({"gputune": said})
        write(report.replace("\x7f", "\\u007f"))  # the one control character that JSON keeps
        return
    who = f"pid {os.getpid()}" if rank is None else f"rank {rank}, pid {os.getpid()}"
    for row in now():
        say(f"{who}: {row['setting']} {row['after']}: {row['status']} ({row['source']}), {row['why']}")
    for program, differences in _elsewhere.items():
        say(f"{who}: {program} was tuned on another machine ({', '.join(differences)}): not all of it is applied")
