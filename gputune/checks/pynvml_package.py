"""Is the deprecated package pynvml installed?

The module `pynvml` belongs to the package nvidia-ml-py. The package called pynvml is abandoned: it warns at every
import, with a message that seems to come from torch, and its old versions overwrite the module with an outdated one.

Source: PyPI, pynvml; nvidia-ml-py.
"""

from gputune.checks import _remedies
from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning
from gputune.checks._questions import reason


def check(facts: Facts, measurements: Measurements) -> Findings:
    pip = _remedies.pip(facts)
    if facts.libraries.pynvml is not None:
        message = f"the deprecated package pynvml {facts.libraries.pynvml} is installed"
        yield warning(message, f"{pip} uninstall -y pynvml && {pip} install --force-reinstall nvidia-ml-py")
    elif facts.libraries.python is None or reason(facts, "libraries.pynvml"):
        yield unread(facts, "libraries.pynvml", "the list of installed packages")
    else:
        yield ok("the deprecated package pynvml is not installed")
