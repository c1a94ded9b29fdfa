"""Files of tokenizers, which reads and writes in Rust."""

from ._rerouting import Paths

PATHS: Paths = {
    "tokenizers": [("Tokenizer.save", "path", "written"), ("Tokenizer.from_file", "path", "read")],
    "tokenizers.models": [("Model.save", "folder", "changed")],
}
