"""What is wrong with the words that were typed, on one line that names what was probably meant."""

import inspect
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, get_type_hints

from gputune.errors import UsageError


def no_such_command(word: str, commands: Iterable[str], above: str) -> UsageError:
    return UsageError(f"{word[:40]}: no such command", _meant(word, commands) or f"see: {above} --help")


def one_too_many(word: str, ctx: Any) -> UsageError:
    from gputune.cli import _help_text

    return UsageError(f"{word[:40]}: is one word too many", f"usage: {_help_text.usage(ctx)}")


def line(error: Any) -> str:
    """The line about an error of typer's. Its classes differ between releases, their names do not."""
    ctx = getattr(error, "ctx", None)
    fault, remedy = _DESCRIBED.get(type(error).__name__, _other)(error, ctx)
    command = ctx.command_path if ctx else "gputune"
    return f"{fault}; {remedy or f'see: {command} --help'}"


def _no_such_option(error: Any, ctx: Any) -> tuple[str, str]:
    word = error.option_name
    options = [option for param in ctx.command.get_params(ctx) for option in param.opts] if ctx else []
    return f"{word[:40]}: no such option", _meant(word, options)


def _missing(error: Any, ctx: Any) -> tuple[str, str]:
    from gputune.cli import _pages

    page = _pages.PAGES[_pages.path(ctx)]
    return f"{_name(error.param)} is missing", f"as in: {page.examples[0][0]}"


def _bad_value(error: Any, ctx: Any) -> tuple[str, str]:
    if error.param is None:
        return _other(error, ctx)
    return f"{_name(error.param)}: {_range(error.param, ctx) or error.message.rstrip('.')}", ""


def _bad_use(error: Any, ctx: Any) -> tuple[str, str]:
    """An option without its value, or a value of one that takes none."""
    known = {option: one for one in (ctx.command.get_params(ctx) if ctx else ()) for option in one.opts}
    takes_none = error.option_name in known and known[error.option_name].is_flag
    return f"{error.option_name}: {'takes no value' if takes_none else 'its value is missing'}", ""


def _other(error: Any, ctx: Any) -> tuple[str, str]:
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:], ""


_DESCRIBED = {
    "NoSuchOption": _no_such_option,
    "MissingParameter": _missing,
    "BadParameter": _bad_value,
    "BadOptionUsage": _bad_use,
}


def _meant(word: str, known: Iterable[str]) -> str:
    """What was probably meant; empty where nothing is like it."""
    close = get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else ""


def _name(param: Any) -> str:
    return str(param.opts[-1] if param.param_type_name == "option" else param.metavar or param.name.upper())


def _range(param: Any, ctx: Any) -> str:
    """Which numbers the verb takes there; empty where it is no number or has no limits."""
    function = inspect.unwrap(ctx.command.callback)
    hint: Any = get_type_hints(function, include_extras=True)[param.name]
    low, high = hint.__metadata__[0].min, hint.__metadata__[0].max
    if low is None:
        return ""
    kind = "a number" if float in (hint.__origin__, *getattr(hint.__origin__, "__args__", ())) else "a whole number"
    return f"must be {kind} of at least {low:g}" if high is None else f"must be {kind} from {low:,.9g} to {high:,.9g}"
