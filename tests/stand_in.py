"""Stand-ins for what happens around them is asked about and not they: a torch without anything in it, which no process
has to import for two seconds, and benches that measure nothing.
"""

from pathlib import Path
from textwrap import indent

from making import before_others

TORCH = """
__version__ = "2.13.0+cpu"
class OutOfMemoryError(RuntimeError): pass
class version: cuda = None
class cuda:
    OutOfMemoryError = OutOfMemoryError
    def set_device(device): pass
def zeros(*size, device): pass
"""

_IN_BENCH_PROCESSES = """
import sys
if "gputune.bench_process.serve" in sys.orig_argv:
    from gputune import benches
    benches.__path__.insert(0, {folder!r})
"""

_HEAD = """
import os, signal, sys, time
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
def told(bench, sample=1.0, **params):
    return Measurement(bench=bench, metric="told", unit="ms", samples=(sample,), params=params, device="cpu")
def measure(context):
"""


def torch(folder: Path) -> str:
    """A PYTHONPATH on which torch is a stand-in."""
    (folder / "torch.py").write_text(TORCH)
    return before_others(folder)


def benches(folder: Path, **bodies: str) -> str:
    """A PYTHONPATH on which bench processes find benches with these bodies, which may use `told`, beside gputune's own
    or in their place.
    """
    planted = folder / "planted"
    planted.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_IN_BENCH_PROCESSES.format(folder=str(planted)))
    for name, body in bodies.items():
        (planted / f"{name}.py").write_text(_HEAD + indent(body, "    "))
    return before_others(folder)
