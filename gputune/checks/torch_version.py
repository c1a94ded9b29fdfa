"""Is torch here, in a version that gputune supports?

gputune measures and tunes torch 2.4 and newer; in older ones flags, fused optimizers and attention differ in ways that it
does not know, so its advice may not hold. It asks the torch of its own interpreter.

Source: PyTorch's release notes.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import number, reason, unread
from gputune.facts import Facts
from gputune.measurement import Measurement

CHECK = "torch_version"
OLDEST = (2, 4)


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    version = facts.libraries.torch
    found = number(version)
    if version is None:
        yield _missing(facts)
    elif found is None:
        yield Finding(check=CHECK, severity="UNKNOWN", message=f"torch's version {version!r} is no number")
    elif found < OLDEST:
        yield Finding(
            check=CHECK,
            severity="WARNING",
            message=f"torch {version} is older than 2.4, which gputune supports",
            remedy="pip install --upgrade torch",
        )
    else:
        yield Finding(check=CHECK, severity="OK", message=f"torch {version}")


def _missing(facts: Facts) -> Finding:
    why = reason(facts, "libraries.torch")
    if why is not None and "No module named 'torch'" not in why:
        return unread(facts, CHECK, "libraries.torch", "torch's version")
    return Finding(
        check=CHECK,
        severity="WARNING",
        message=f"torch is not installed in {facts.libraries.executable or 'this Python'}",
        remedy="pip install torch",
    )
