"""JSON as strict as `strict_yaml`: no key twice, no NaN or Infinity, and the same limits."""

import json
import re
from collections import Counter
from typing import Any, NoReturn

from gputune.host.uncollected import uncollected
from gputune.profile import limits
from gputune.profile.limits import Malformed

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str) -> Any:
    """The value that `text` is. Raises Malformed."""
    try:
        with uncollected():
            data = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise Malformed(f"line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise Malformed(f"nested more than {limits.DEEPEST} deep") from None
    except Malformed:
        raise
    except ValueError:  # Python's own limit on the digits of a number
        raise Malformed(f"a whole number of more than {limits.MOST_DIGITS} digits") from None
    limits.check(data)
    if _SURROGATE.search(text):
        _check_unicode(data)
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise Malformed(f"the key {twice[: limits.LONGEST]!r} occurs twice")
    return data


def _refuse_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not a finite number")


def _check_unicode(data: Any) -> None:
    """Half of a surrogate pair is valid in JSON's escapes, but is no character."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Malformed("a text with an unpaired surrogate") from None
