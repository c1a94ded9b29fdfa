"""Writes files in `finally`, at exit, and behind its loop."""

import atexit
from pathlib import Path

import training

atexit.register(lambda: Path("at_exit").write_text("x"))
try:
    for _ in training.forever(*training.parts()):
        pass
finally:
    Path("finally").write_text("x")
