"""`gputune merge`: one profile for several nodes of a kind, so that all ranks of a job apply the same."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gputune.cli import _choices
from gputune.errors import UsageError

EPILOG = _choices.epilog("""
  # One profile for all ranks of a job
  gputune merge node0.yaml node1.yaml -o job.yaml
  # Look at it first
  gputune merge node*.yaml -o -
""", faults=_choices.UNWRITTEN)  # fmt: skip


def merge(
    profiles: Annotated[
        list[Path], typer.Argument(parser=_choices.path, metavar="PROFILE", help="One per node.", show_default=False)
    ],
    output: Annotated[Path, _choices.output("Where to write the common profile; - is stdout.", show_default=False)],
) -> None:
    """Make one profile for nodes of a kind.

    It is the one whose settings most nodes share, with the programs of all; nodes whose own profile differs are named.

    All must have the same GPU (or CPU) and torch: exit code 2 otherwise. Settings that a node will skip are named.
    """
    from gputune import profile
    from gputune.cli._output import earlier, write
    from gputune.host.stderr import say
    from gputune.knobs import all_knobs
    from gputune.report.standing import with_tuned

    if str(output) != "-":
        earlier(output)
    loaded = [profile.load(path) for path in profiles]
    for path, other in zip(profiles, loaded, strict=True):
        odd = loaded[0].fingerprint.differences(other.fingerprint, ("device", "compute_capability", "torch"))
        if odd:
            raise UsageError(
                f"{path}: was not measured on the same device and torch as {profiles[0]}: {'; '.join(odd)}",
                "merge profiles of one kind of node, and start a job on nodes of one kind",
            )
    chosen = profile.representative_index(loaded)
    differences = loaded[chosen].fingerprint.differences
    for path, other in zip(profiles, loaded, strict=True):
        if names := profile.differing_settings(loaded[chosen], other):
            say(f"{path}: recommends other values of {', '.join(names)}")
        if names := [name for name, knob in all_knobs().items() if differences(other.fingerprint, knob.DEPENDS)]:
            say(f"{path}: measured on another CPU or number of CPUs; that node will skip {', '.join(names)}")
    programs = (one for other in loaded for one in other.programs)
    write(with_tuned(replace(loaded[chosen], programs=()), *programs), output)
    say(f"took {profiles[chosen]} as the profile of all {len(profiles)} nodes")
