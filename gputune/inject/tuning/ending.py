"""Ending a process in the middle of its training, so that nothing behind the loop is run."""

import logging
import multiprocessing
import os
import sys
from contextlib import suppress
from typing import NoReturn


def end(code: int = 0) -> NoReturn:
    """Exit without running any handler of the program's."""
    quiesce()
    os._exit(code)


def quiesce() -> None:
    """Flush what was written, and end the children."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]  # what logging.shutdown goes through
        with suppress(Exception):
            reference().flush()
    with suppress(Exception):
        for child in multiprocessing.active_children():
            child.kill()
