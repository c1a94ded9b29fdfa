"""`gputune explain`: the documentation of a setting, a check or a bench, and the schemas of what gputune writes."""

from typing import Annotated, Any

import typer

from gputune.cli import _choices
from gputune.errors import require

EPILOG = _choices.epilog("""
  gputune explain                   # List them all
  gputune explain matmul_precision  # A setting
  gputune explain shm_size          # A check
  gputune explain launching         # Which programs gputune apply reaches
  gputune explain profile-schema    # The JSON Schema of a profile, for an editor
""")


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A setting, a check, a bench, launching or a schema. Without it all are listed.",
            autocompletion=_choices.topics,
        ),
    ] = None,
) -> None:
    """Explain a setting, a check or a bench.

    It says what that is, why it matters, and where the rule comes from.

    launching explains which programs gputune apply reaches. profile-schema, check-schema and status-schema print the
    JSON Schema (2020-12) of a profile, of check --json and of status --json. As long as the number of the key schema
    stays, the JSON of check and status only gets more keys and words.
    """
    from gputune import benches, checks, knobs
    from gputune.host.stderr import show
    from gputune.profile.schema import json_schema
    from gputune.report import json
    from gputune.runtime import reach

    packages: dict[str, Any] = {"setting": knobs, "check": checks, "bench": benches}
    topics = {name: (kind, package.load) for kind, package in packages.items() for name in package.names()}
    topics["launching"] = ("apply", lambda _: reach)
    if name is None:
        for topic, (kind, load) in topics.items():
            show(f"{kind:8} {topic:31} {_documentation(load(topic)).splitlines()[0]}")
        for topic in _choices.SCHEMAS:
            show(f"{'schema':8} {topic:31} The JSON Schema of a profile, or of the JSON of check or status.")
        return
    require(name, [*topics, *_choices.SCHEMAS], "setting, check or bench")
    if name in _choices.SCHEMAS:
        schemas = {"profile-schema": json_schema, "check-schema": json.check_schema}
        show(json.text(schemas.get(name, json.status_schema)()))
        return
    kind, load = topics[name]
    module: Any = load(name)
    show(f"{name} ({kind})\n\n{_documentation(module)}")
    if hasattr(module, "USE"):
        show(f"\nIn the script: {module.USE}")
    if kind == "setting":
        depends = ", ".join(module.DEPENDS)
        show(f"\nPhase: {module.PHASE}. Effect on results: {module.NUMERICS}. Measured for: {depends}.")


def _documentation(module: Any) -> str:
    return (module.__doc__ or "(no explanation: python -OO strips docstrings)").strip()
