"""Whether an exception in a model's call may come from a setting: told by who raised it, and by its words."""

import re
import sys
from types import TracebackType
from typing import Any

from ..knobs.compile import BackwardFailed

OWN = __name__.removesuffix(".live.faults")
"""The package that this module is loaded in."""
KINDS = (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError)
"""What torch's operators raise for a dtype or a layout. A class derived from these is somebody's signal."""
WORDS = re.compile(
    "dtype|scalar ?type|bfloat16|not implemented for|autocast|strides?\\b|contiguous|memory.format|channels_last|layout"
    "|cudnn|cublas|unable to find an engine|without overflow",
    re.IGNORECASE,
)
"""What torch's operators say of a dtype or a layout, and none of their sentences on shapes, indices or values."""
CHECKED = {"dtype", "is_contiguous", "stride", "is_floating_point"}
"""The attributes of a tensor that an assert of the program's on its dtype or layout reads."""


def may_be_a_settings(error: Exception) -> bool:
    """Whether torch raised it in an operator, for a dtype or a layout, or while it compiled. What the program's own
    `raise` raised is the program's, whatever it says. An assert that reads a dtype or a layout checks what a setting
    changes.
    """
    dynamo: Any = sys.modules.get("torch._dynamo.exc")
    if isinstance(error, BackwardFailed) or (dynamo and isinstance(error, dynamo.TorchDynamoException)):
        return True
    trace = innermost(error)
    if trace is None or type(error) not in KINDS:
        return False
    if is_the_programs(error) and _is_raise(trace):
        return type(error) is AssertionError and _asserts_dtype(trace)
    # What a thread or a worker raised comes with its own traceback as text.
    return WORDS.search(str(error)) is not None and not str(error).startswith("Caught ")


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
    trace = innermost(error)
    if trace is None:
        return False
    frame = trace.tb_frame
    home = str(frame.f_globals.get("__name__", ""))
    ours = home == OWN or home.startswith(f"{OWN}.")
    return not ours and home.partition(".")[0] != "torch" and not frame.f_code.co_filename.startswith("<eval_with_key>")


def _is_raise(trace: TracebackType) -> bool:
    from opcode import opmap

    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


def _asserts_dtype(trace: TracebackType) -> bool:
    """Whether an assert raised, and a line of its condition reads one of `CHECKED`."""
    import dis

    code = list(dis.get_instructions(trace.tb_frame.f_code))
    at = next(number for number, one in enumerate(code) if one.offset == trace.tb_lasti)
    # Only an assert loads its exception so, and its message comes after that.
    loads = [number for number, one in enumerate(code[:at]) if _loads_assertion_error(one)]
    where = code[at].positions
    if not loads or not where or not where.lineno or not where.end_lineno:
        return False
    lines = range(where.lineno, where.end_lineno + 1)
    condition = [one for one in code[: loads[-1]] if one.positions and one.positions.lineno in lines]
    return any(one.opname in {"LOAD_ATTR", "LOAD_METHOD"} and one.argval in CHECKED for one in condition)


def _loads_assertion_error(one: Any) -> bool:
    return one.opname == "LOAD_ASSERTION_ERROR" or (
        one.opname == "LOAD_COMMON_CONSTANT" and "AssertionError" in one.argrepr
    )
