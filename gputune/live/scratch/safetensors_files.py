"""Files of safetensors: all of its ways to save go through `serialize_file`, and those to load through `safe_open`."""

from ._rerouting import Paths

PATHS: Paths = {"safetensors": [("serialize_file", "filename", "written"), ("safe_open", "filename", "read")]}
