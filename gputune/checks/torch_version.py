"""Is torch here, in a version that gputune supports?

gputune measures and tunes torch 2.4 and newer; in older ones flags, fused optimizers and attention differ in ways that it
does not know, so its advice may not hold. It asks the torch of its own interpreter, or of the one that `--python` names.

Source: PyTorch's release notes.
"""

from gputune.checks._answers import error, ok, unknown, unread, warning
from gputune.checks._common import Facts, Finding, Findings, Measurements, number, reason

OLDEST = (2, 4)
INSTALL = "pip install torch, or name the Python that has it: gputune check --python PATH"


def check(facts: Facts, measurements: Measurements) -> Findings:
    version = facts.libraries.torch
    found = number(version)
    if version is None:
        yield _missing(facts)
    elif found is None:
        yield unknown(f"torch's version {version!r} is no number")
    elif found < OLDEST:
        yield warning(f"torch {version} is older than 2.4, which gputune supports", "pip install --upgrade torch")
    else:
        yield ok(f"torch {version}")


def _missing(facts: Facts) -> Finding:
    why = reason(facts, "libraries.torch") or ""
    python = facts.libraries.executable or "this Python"
    if "No module named 'torch'" in why:
        return warning(f"torch is not installed in {python}", INSTALL)
    if why.startswith("import torch:") or "(exit code -" in why:
        return error(
            f"torch cannot be imported: {why}",
            f"{python} -c 'import torch' shows it whole; pip install --force-reinstall torch",
        )
    return unread(facts, "libraries.torch", "torch's version")
