"""A profile's text read strictly, as YAML or as JSON: no key twice, no NaN or Infinity, and the same limits.

Of YAML only the part is read that a profile needs, built straight from the parser's events.

Reading events instead of PyYAML's tree has two reasons. The tree builder crashes the process on 50,000 nested brackets
and expands aliases before anyone can refuse them. And YAML 1.1 turns `no`, `1:30` and `2026-11-21` into something
else: here a plain scalar is null, true, false or a JSON number, and anything else is text.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

import yaml
from yaml import ScalarEvent

from gputune.host.uncollected import uncollected
from gputune.profile import limits
from gputune.profile.limits import LONGEST, MOST_ENTRIES, MOST_VALUES, Malformed

_STARTS_A_NUMBER = frozenset("-0123456789")
_WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
_INTEGER = re.compile(rf"-?(?:0|[1-9][0-9]{{0,{limits.MOST_DIGITS - 1}}})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str) -> Any:
    """The value of a text: one that starts with a brace is JSON, and is not tried as YAML. Raises Malformed."""
    return parse_json(text) if text.lstrip(" \t\r\n")[:1] == "{" else parse_yaml(text)


def parse_yaml(text: str) -> Any:
    """The one document in `text`; None for an empty one. Raises Malformed, with the line."""
    builder = _Builder()
    event: Any = None
    with uncollected():
        try:
            loader = _Loader(text)
            while (event := loader.get_event()) is not None:
                builder.take(event)
        except yaml.YAMLError as error:
            raise Malformed(_first_line(error)) from None
        except Malformed as fault:
            raise Malformed(f"line {event.start_mark.line + 1}: {fault}") from None
    return builder.document


def plain(value: str) -> Any:
    if value[:1] not in _STARTS_A_NUMBER:
        return _WORDS.get(value, value)
    if _INTEGER.fullmatch(value):
        return int(value)
    if _FLOAT.fullmatch(value) and math.isfinite(number := float(value)):
        return number
    return value


class _Builder:
    """Puts events together without recursion. `_open` holds the collections that are not closed yet."""

    def __init__(self) -> None:
        self.document: Any = None
        self._documents = 0
        self._values = 0
        self._open: list[tuple[Any, list[Any]]] = []  # the collection, and for a mapping the key that waits

    def take(self, event: Any) -> None:
        kind = type(event)
        if kind is ScalarEvent:  # nine in ten
            if event.anchor or event.tag or len(event.value) > LONGEST:
                _check(event)
            self._add(event.value if event.style or event.tag else plain(event.value))
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._begin(event, {} if kind is yaml.MappingStartEvent else [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._open.pop()
        elif kind is yaml.AliasEvent:
            _check(event)
        elif kind is yaml.DocumentStartEvent:
            self._documents += 1
            if self._documents > 1:
                raise Malformed("one document is expected, and another starts")

    def _begin(self, event: Any, collection: Any) -> None:
        _check(event)
        if len(self._open) >= limits.DEEPEST:
            raise Malformed(f"nested more than {limits.DEEPEST} deep")
        self._add(collection)
        self._open.append((collection, []))

    def _add(self, value: Any) -> None:
        if not self._open:
            self.document = value
            return
        collection, waiting = self._open[-1]
        if waiting:
            collection[waiting.pop()] = value
            return
        self._values += 1 if type(collection) is list else 2  # a key is counted with its value
        if self._values > MOST_VALUES or len(collection) >= MOST_ENTRIES:
            limits.check_count(self._values)
            limits.check_size(len(collection) + 1)
        if type(collection) is list:
            collection.append(value)
        else:
            waiting.append(_key(value, collection))


def _check(event: Any) -> None:
    if type(event) is yaml.AliasEvent or event.anchor:
        raise Malformed("anchors and aliases are not allowed")
    if event.tag and event.tag != "!":
        raise Malformed(f"tags are not allowed ({event.tag})")
    if type(event) is ScalarEvent:
        limits.check_text(event.value)


def _key(value: Any, collection: dict[str, Any]) -> str:
    if not isinstance(value, str):
        raise Malformed(f"a key must be text, not {value!r}")
    limits.check_key(value)
    if value in collection:
        raise Malformed(f"the key {value!r} occurs twice")
    return value


def _first_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).split("\n")[0]
    if "nesting depth" in problem:  # a limit of PyYAML's own, since 6.0.4
        problem = f"nested more than {limits.DEEPEST} deep"
    return f"line {mark.line + 1}: {problem}" if mark else f"not YAML: {problem}"


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str) -> Any:
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
    try:
        if _SURROGATE.search(text):  # half of a pair is valid in JSON's escapes, but is no character
            json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Malformed("a text with an unpaired surrogate") from None
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise Malformed(f"the key {twice[: limits.LONGEST]!r} occurs twice")
    return data


def _refuse_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not a finite number")
