"""Runs in the user's process: the shim that waits for `import torch`, and the hook that then applies settings.

It imports only the standard library and its neighbours (relatively), and torch inside functions. In the user's
interpreter this folder, `knobs`, `plugins` and `resources` are loaded below one private parent, `_gputune`, so that the
program's own `import gputune` stays clean.
"""

import sys


def say(fault: str) -> None:
    """Write one line of printable characters to stderr."""
    from ..resources.printable import printable

    write(f"gputune: {printable(' '.join(fault.split()))}")


def write(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
    except Exception:
        return  # stderr may be closed or full, and the program that it belongs to goes on
