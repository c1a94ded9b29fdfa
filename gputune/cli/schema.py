"""`gputune schema`: the JSON Schema of a profile."""


def schema() -> None:
    """Print the JSON Schema of a profile, for editors and other tools."""
    from gputune.host.stderr import show
    from gputune.profile.schema import json_schema
    from gputune.report import json

    show(json.text(json_schema()))
