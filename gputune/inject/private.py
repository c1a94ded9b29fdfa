"""The private parent `_gputune`: this file is its body, and gputune's folder its place for submodules.

Below it `_gputune.inject`, `_gputune.settings` and their neighbours import each other relatively, in interpreters that must not
see gputune, whose own `import gputune` may be another version.
"""

import importlib
import importlib.util
import os
import sys
from types import ModuleType

NAME = "_gputune"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def hook() -> ModuleType:
    """The module that applies settings in this process: the one that is loaded already, else this copy's."""
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(NAME, __file__, submodule_search_locations=[FOLDER])
        assert spec is not None
        assert spec.loader is not None
        parent = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = parent
        spec.loader.exec_module(parent)
    return importlib.import_module(NAME + ".inject.hook")
