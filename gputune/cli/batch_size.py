"""`gputune batch-size`: how large a batch fits into the memory, and which one trains fastest."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from gputune.cli import _choices

EPILOG = _choices.epilog("""
  # make_step() returns step(batch_size)
  gputune batch-size train.py:make_step
  # No batch larger than this
  gputune batch-size train.py:make_step --most 512
""", faults=_choices.UNWRITTEN)  # fmt: skip


def batch_size(
    training: Annotated[
        str,
        typer.Argument(
            parser=_choices.name,
            metavar="FILE.py:CALLABLE",
            help="The callable takes no arguments and returns step(batch_size), which runs one training step; "
            "package.module:callable works too.",
        ),
    ],
    device: Annotated[
        str, _choices.word("DEVICE", "auto, cpu, cuda or cuda:N.", lambda: ("auto", "cpu", "cuda"), "--device")
    ] = "auto",
    start: Annotated[int, _choices.count("The first batch to try.")] = 1,
    most: Annotated[int, _choices.count("The largest batch to try.")] = 65536,
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="SECONDS", help="Roughly how long the whole search takes.", min=5, max=86400),
    ] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Find the batch size that trains fastest.

    The largest one that fits with a margin is named too.
    """
    from gputune import batch_size
    from gputune.host.stderr import show
    from gputune.report import batch_sizes, json
    from gputune.report.progress import shown

    request = batch_size.BatchSizeRequest(make=training, device=device, start=start, most=most, seconds=seconds)
    with shown() as progress:
        answer = batch_size.search(request, progress=progress)
    if as_json:
        show(json.text(asdict(answer)))
    else:
        batch_sizes.print_all(answer, sys.stdout)
