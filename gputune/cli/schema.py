"""`gputune schema`: the JSON Schema of a profile, and of what `check` and `status` print."""

from typing import Annotated

import typer

SUBJECTS = ("profile", "check", "status")


def schema(
    of: Annotated[
        str, typer.Option("--of", metavar="WHAT", help="profile, or the JSON that check or status prints.")
    ] = "profile",
) -> None:
    """Print the JSON Schema (2020-12) of a profile, or of `check --json` or `status --json`, for editors and programs.

    Within one number of their key `schema`, the JSON of `check` and `status` only gets more keys and words.
    """
    from gputune.cli import _choices
    from gputune.host.stderr import show
    from gputune.profile.schema import json_schema
    from gputune.report import json, json_answers

    _choices.require(of, SUBJECTS, "schema", "--of")
    made = {"profile": json_schema, "check": json_answers.check_schema, "status": json_answers.status_schema}[of]()
    show(json.text(made))
