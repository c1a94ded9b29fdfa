"""The private parent package `_gputune`, whose submodules are those of gputune's own folder.

Below it `_gputune.live`, `_gputune.knobs` and their neighbours import each other relatively. A user's interpreter
thus never sees a package named gputune: its own `import gputune`, perhaps of another version, stays clean.
"""

import importlib
import os
import sys
from types import ModuleType

NAME = "_gputune"


def hook() -> ModuleType:
    """The module that applies settings in this process: the one already loaded, else the one beside this file."""
    return own("live.hook")


def own(name: str) -> ModuleType:
    """A module of gputune's, by its name in there."""
    if NAME not in sys.modules:
        parent = ModuleType(NAME)
        parent.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
        sys.modules[NAME] = parent
    return importlib.import_module(f"{NAME}.{name}")
