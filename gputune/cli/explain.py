"""`gputune explain`: what a setting, a check or a bench is about, and which programs a profile reaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

LAUNCHING = "launching"


def explain(
    name: Annotated[
        str | None, typer.Argument(help="A setting, a check or a bench, or launching; none lists them all.")
    ] = None,
) -> None:
    """Explain a setting, a check or a bench: what it is, why it matters, where the rule comes from. Launching is which programs
    gputune apply reaches.
    """
    from gputune import benches, checks, settings
    from gputune.runtime import reach

    kinds: dict[str, Any] = {"setting": settings, "check": checks, "bench": benches}
    if name is None:
        _list(kinds, reach)
        return
    if name == LAUNCHING:
        print(f"{name}\n\n{_text(reach)}")
        return
    found = [(kind, package.load(name)) for kind, package in kinds.items() if name in package.names()]
    if not found:
        raise _unknown(name, [LAUNCHING, *(one for package in kinds.values() for one in package.names())])
    for kind, module in found:
        print(f"{name} ({kind})\n\n{_text(module)}")
        if hasattr(module, "USE"):
            print(f"\nIn the script: {module.USE}")
        if kind == "setting":
            print(
                f"\nPhase: {module.PHASE}. Effect on results: {module.NUMERICS}. Measured for: {', '.join(module.DEPENDS)}."
            )


def _list(kinds: Mapping[str, Any], reach: Any) -> None:
    for kind, package in kinds.items():
        for one in package.names():
            print(f"{kind:8} {one:31} {_title(package.load(one))}")
    print(f"{'apply':8} {LAUNCHING:31} {_title(reach)}")


def _title(module: Any) -> str:
    return _text(module).split("\n")[0]


def _text(module: Any) -> str:
    return (module.__doc__ or "(python -OO strips the explanations)").strip()


def _unknown(name: str, known: list[str]) -> Exception:
    from difflib import get_close_matches

    from gputune.errors import UsageError

    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else "'gputune explain' lists them"
    return UsageError(f"{name}: there is no such setting, check or bench", hint)
