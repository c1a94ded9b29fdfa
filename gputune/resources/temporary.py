"""Whether anything can be kept for a moment."""

from __future__ import annotations

import tempfile


def temporary_folder() -> bool:
    """Whether this process has a folder for temporary files.

    It has none under a read-only root without a /tmp. Workers of a DataLoader make the socket there through which they hand over
    their batches, and without it torch waits for them forever.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True
