"""Files of safetensors, which reads and writes in Rust, and always by these two functions."""

from ._rerouting import Paths

PATHS: Paths = {"safetensors": [("serialize_file", "filename", "written"), ("safe_open", "filename", "read")]}
