"""`python -m gputune`. The start is beside this package, whatever else has its name in the working folder."""

import os
import sys

# Without pathlib: a module of its name may lie in the working folder until the path is set.
users, sys.path[:] = sys.path[:], [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]  # noqa: PTH100, PTH120
from gputune_start import main  # noqa: E402

sys.path[:] = users
main()
