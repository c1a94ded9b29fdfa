"""Exceptions that a signal handler of the program's raises, as for a time limit: they interrupt whatever runs, also
gputune's own work, and are meant for the program.
"""

import inspect


def is_for_the_program(error: BaseException) -> bool:
    """Whether gputune's work must end with it instead of making a fault of it."""
    return not isinstance(error, Exception) or passed_a_handler(error)


def passed_a_handler(error: BaseException) -> bool:
    """Whether it passed a function that was given the frame that it interrupted."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        code, inner = trace.tb_next.tb_frame.f_code, trace.tb_next.tb_frame.f_locals
        has_rest = bool(code.co_flags & inspect.CO_VARARGS)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + has_rest]
        given = [inner.get(name) for name in names]
        frames = [one for value in given for one in (value if isinstance(value, tuple) else (value,))]
        if any(one is trace.tb_frame for one in frames):
            return True
        trace = trace.tb_next
    return False
