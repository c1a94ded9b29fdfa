"""Whether an exception in a model's call may come from a setting: told by who raised it, and by its words."""

import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from ..knobs import load
from ..knobs._outputs import Uncopied
from ..knobs.compile import is_the_compilers
from .nets import Found

OWN = __name__.removesuffix(".live.faults")
"""The package that this module is loaded in."""
KINDS = (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError)
"""The classes, exactly, of exceptions that torch's operators raise for dtypes and layouts. A subclass of one is the
program's own."""
COMPILER = ("torch._dynamo.", "torch._functorch._aot_autograd", "torch._inductor.")
"""The modules of torch's compiler, which also raises in words that nothing tells apart."""
OTHERS = re.compile(r"\b(found|got)\b.*\b(double|long|int|short|byte|char|bool|half|complex\w*)\b", re.IGNORECASE)
"""Torch's messages about dtypes that gputune never turns on, which tell a fault of the program's own."""


def may_be_a_settings(error: Exception, settings: Iterable[str]) -> bool:
    """Whether torch raised it while it compiled, or in an operator in words that one of these settings explains (its
    `FAULTS`), or whether gputune did. What the program's own `raise` raised is the program's, whatever it says. An
    assert that reads what a setting changes is not.
    """
    trace, names = innermost(error), list(settings)
    if is_the_compilers(error) or isinstance(error, Uncopied | Found):
        return True
    if "compile" in names and _home(error).startswith(COMPILER) and may_be_another_uncompiled(error):
        return True
    words = [load(name).FAULTS for name in names]
    if trace is None or type(error) not in KINDS or not words:
        return False
    text, faults = str(error), re.compile("|".join(words), re.IGNORECASE)
    if is_the_programs(error) and _is_raise(trace):
        return type(error) is AssertionError and any(map(faults.search, _asserted(trace)))
    if text.startswith("Caught ") or OTHERS.search(text):
        return False  # what a thread or a worker raised has its own traceback as text
    return faults.search(text) is not None


def may_be_another_uncompiled(error: Exception) -> bool:
    """Whether a compiled call that raised it may raise another one uncompiled, or none: torch's code raised it, and the
    device is not lost. How torch.utils.checkpoint ends a forward that it computes again is no failure.
    """
    is_torchs = type(error).__module__.partition(".")[0] in {"builtins", "torch"} and not is_the_programs(error)
    is_torchs &= type(error).__name__ != "_StopRecomputationError"
    return is_torchs and not is_out_of_memory(error) and not re.search(r"\b(CUDA|HIP) error\b", str(error))


def is_out_of_memory(error: BaseException) -> bool:
    return type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)


def innermost(error: BaseException) -> TracebackType | None:
    """The frame of Python's that raised an exception, or called what did."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def is_the_programs(error: BaseException) -> bool:
    """Whether its innermost frame is neither torch's nor gputune's."""
    trace, home = innermost(error), _home(error)
    ours = home == OWN or home.startswith(f"{OWN}.") or home.partition(".")[0] == "torch"
    return trace is not None and not ours and not trace.tb_frame.f_code.co_filename.startswith("<eval_with_key>")


def _home(error: BaseException) -> str:
    """The name of the module of an exception's innermost frame."""
    trace = innermost(error)
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def _is_raise(trace: TracebackType) -> bool:
    from opcode import opmap

    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


def _asserted(trace: TracebackType) -> list[str]:
    """The attributes that the condition of an assert that raised reads on its line; none if it was no assert."""
    import dis

    code = list(dis.get_instructions(trace.tb_frame.f_code))
    at = next(number for number, one in enumerate(code) if one.offset == trace.tb_lasti)
    # Only an assert loads its exception so, and its message comes after that.
    loads = [number for number, one in enumerate(code[:at]) if _loads_assertion_error(one)]
    where = code[at].positions
    if not loads or not where or not where.lineno or not where.end_lineno:
        return []
    lines = range(where.lineno, where.end_lineno + 1)
    condition = [one for one in code[: loads[-1]] if one.positions and one.positions.lineno in lines]
    return [one.argval for one in condition if one.opname in {"LOAD_ATTR", "LOAD_METHOD"}]


def _loads_assertion_error(one: Any) -> bool:
    return one.opname == "LOAD_ASSERTION_ERROR" or (
        one.opname == "LOAD_COMMON_CONSTANT" and "AssertionError" in one.argrepr
    )
