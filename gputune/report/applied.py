"""Tables of applied settings and of their current state, for a terminal."""

from collections.abc import Sequence
from typing import IO

from gputune import knobs
from gputune.knobs import Value, value_text
from gputune.live.advice import Advice
from gputune.live.applied import TF32_OVERRIDE, Applied
from gputune.report.answer_parts import NETWORKS
from gputune.report.tables import add, console_of, plain, table_of
from gputune.runtime.status import ProgramStatus, Status

VERDICTS = {None: "this GPU has no TF32", True: "took effect", False: "did NOT take effect"}


def print_applied(applied: Sequence[Applied], stream: IO[str]) -> None:
    table = table_of("setting", "value", "status", "why")
    for row in applied:
        add(table, row.setting, "" if row.after is None else value_text(row.after), row.status, row.why)
    console_of(stream).print(table)


def print_advice(advice: Advice | None, stream: IO[str]) -> None:
    if not advice:
        return
    rows = [(NETWORKS.get(family, family), values) for family, values in advice.families.items()]
    rows += [("any other model", advice.general)] if advice.families or advice.general else []
    for program in advice.programs:
        choices = program.loading.choices if program.loading else {}
        rows.append((f"{program.entry}, as tuned", {**choices, **program.settings}))
    table = table_of("put into", "settings")
    for name, values in rows:
        add(table, name, ", ".join(map(_put, values, values.values())) or "nothing")
    console_of(stream).print(table)


def _put(setting: str, value: Value) -> str:
    put = knobs.turned_on_for(setting, value)
    instead = "" if put == value else f" in place of {value_text(value)}, where the GPU has it"
    return setting if value is True else f"{setting} {value_text(put)}{instead}"


def _program(program: ProgramStatus) -> str:
    if program.differences:
        how = ", ".join(program.differences)
        return f"{program.entry} was tuned elsewhere ({how}): not all of it is applied; tune it here."
    return f"{program.entry}, as tuned: {', '.join(program.settings) or 'nothing'}, for its models alone."


def print_status(process: Status, verify: bool, stream: IO[str]) -> None:
    console = console_of(stream)
    console.print(plain(f"torch {process.torch} of {process.python}, {process.gpu or 'without a GPU'}"))
    if process.digest:
        console.print(plain(f"applied here: {process.digest}"))
    table = table_of("setting", "before", "now", "status", "why")
    for row in process.settings:
        whose = f"{row.status} ({row.source})" if row.source else row.status
        add(table, row.setting, value_text(row.before), value_text(row.after), whose, row.why)
    console.print(table)
    for program in process.programs:
        console.print(plain(_program(program)))
    if process.override is not None:
        override = f"{TF32_OVERRIDE}={process.override}"
        console.print(plain(f"{override} decides whether TF32 is used, whatever the flags say."))
    if verify and not process.gpu:
        console.print("Not verified: torch sees no GPU here, and only GPUs have TF32.")
    if process.verified:
        table = table_of("FP32 operation", "setting", "relative error", "verified")
        for seen in process.verified:
            flag = f"{seen.setting} {value_text(seen.value)}"
            add(table, seen.operation, flag, f"{seen.relative_error:.1e}", VERDICTS[seen.took_effect])
        console.print(table)
