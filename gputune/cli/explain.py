"""`gputune explain`: the documentation of a setting, a check or a bench, and which programs a profile reaches."""

from typing import Annotated, Any

import typer


def explain(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A setting, a check, a bench, or launching. Without it all are listed."),
    ] = None,
) -> None:
    """Explain a setting, a check or a bench: what it is, why it matters, and where the rule comes from.

    `launching` explains which programs gputune apply reaches.
    """
    from gputune import benches, checks, settings
    from gputune.cli import _choices
    from gputune.host.stderr import show
    from gputune.runtime import reach

    packages: dict[str, Any] = {"setting": settings, "check": checks, "bench": benches}
    topics = {name: (kind, package.load) for kind, package in packages.items() for name in package.names()}
    topics["launching"] = ("apply", lambda _: reach)
    if name is None:
        for topic, (kind, load) in topics.items():
            show(f"{kind:8} {topic:31} {_documentation(load(topic)).splitlines()[0]}")
        return
    _choices.require(name, topics, "setting, check or bench")
    kind, load = topics[name]
    _print(name, kind, load(name))


def _print(name: str, kind: str, module: Any) -> None:
    from gputune.host.stderr import show

    show(f"{name} ({kind})\n\n{_documentation(module)}")
    if hasattr(module, "USE"):
        show(f"\nIn the script: {module.USE}")
    if kind == "setting":
        depends = ", ".join(module.DEPENDS)
        show(f"\nPhase: {module.PHASE}. Effect on results: {module.NUMERICS}. Measured for: {depends}.")


def _documentation(module: Any) -> str:
    return (module.__doc__ or "(no explanation: python -OO strips docstrings)").strip()
