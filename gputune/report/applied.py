"""What was done about each setting, and what holds, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from gputune.inject.applied import TF32_OVERRIDE, Applied
from gputune.report.tables import add, console_of, plain, table_of, value_text
from gputune.runtime.status import Status


def print_applied(applied: Sequence[Applied], stream: IO[str]) -> None:
    """What was, or will be, done about each setting."""
    table = table_of("setting", "value", "status", "why")
    for one in applied:
        add(table, one.setting, "" if one.after is None else value_text(one.after), one.status, one.why)
    console_of(stream).print(table)


def print_status(found: Status, verify: bool, stream: IO[str]) -> None:
    """What holds in a process, and with `verify` what its computations say."""
    console = console_of(stream)
    console.print(plain(f"torch {found.torch} of {found.python}, {found.gpu or 'without a GPU'}"))
    if found.digest:
        console.print(plain(f"applied here: {found.digest}"))
    table = table_of("setting", "before", "now", "status", "why")
    for one in found.settings:
        whose = f"{one.status} ({one.source})" if one.source else one.status
        add(table, one.setting, value_text(one.before), value_text(one.after), whose, one.why)
    console.print(table)
    if found.override is not None:
        console.print(plain(f"{TF32_OVERRIDE}={found.override} decides about TF32, whatever the flags read."))
    if verify and not found.gpu:
        console.print("Not verified: torch sees no GPU here, and TF32 is a GPU's.")
    if found.verified:
        table = table_of("FP32 operation", "setting", "relative error", "verified")
        for seen in found.verified:
            flag = f"{seen.setting} {value_text(seen.value)}"
            add(table, seen.operation, flag, f"{seen.relative_error:.1e}", _verdict(seen.took_effect))
        console.print(table)


def _verdict(took_effect: bool | None) -> str:
    if took_effect is None:
        return "this GPU has no TF32"
    return "took effect" if took_effect else "did NOT take effect"
