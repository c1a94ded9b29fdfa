"""Whether temporary files can be written."""

import tempfile


def temporary_folder() -> bool:
    """Whether this process has a folder for temporary files, which it lacks under a read-only root without a /tmp.

    DataLoader workers create the socket there through which they pass their batches; without it torch waits forever.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True
