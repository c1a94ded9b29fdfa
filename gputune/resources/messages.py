"""Messages between processes: dataclasses as lines of JSON, each of which names its type."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, get_args


def encode(message: Any) -> bytes:
    return json.dumps({"type": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode(line: bytes | str, kinds: Any, make: Callable[[Any, dict[str, Any]], Any]) -> Any:
    """The message, of one of the union `kinds`. Raises ValueError if the line is none, and whatever `make` raises."""
    data = json.loads(line)
    name = data.pop("type", None) if isinstance(data, dict) else None
    kind = next((one for one in get_args(kinds) if one.__name__ == name), None)
    if kind is None:
        raise ValueError("it is not a message of gputune")
    return make(kind, data)
