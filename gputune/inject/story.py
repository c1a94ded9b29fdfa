"""The one line about what was put into a program, and what was left and why."""

import os
from collections.abc import Mapping, Sequence

from .advice import Tuned
from .applied import Applied, Reason
from .root import Root


def line(rows: Mapping[str, Applied], roots: Sequence[Root], tuned: Tuned | None) -> str:
    """Return a line that says which settings were applied to the program's models, which were not and why, and how this
    run differs from the one that was tuned.
    """
    models = ", ".join(dict.fromkeys(f"{root.name} ({root.family})" if root.family else root.name for root in roots))
    put = [_put(row) for row in rows.values() if row.status == "applied"]
    left = [
        f"{row.setting} ({row.why})"
        for row in rows.values()
        if row.status != "applied" and row.because(Reason.NO_IMAGES) is None
    ]
    words = f"put into {models}: {', '.join(put)}" if put else f"nothing put into {models}"
    if left:
        words += f"; left: {', '.join(left)}"
    elif not put:
        words += ": nothing measured better than torch's defaults"
    return "; ".join([words, *_differences(roots, tuned)])


def _put(row: Applied) -> str:
    said = row.setting if row.after is True else f"{row.setting} {row.after}"
    others = [str(why) for why in row.reasons if why.reason not in (Reason.PUT_IN, Reason.NO_IMAGES)]
    return f"{said} ({'; '.join(others)})" if others else said


def _differences(roots: Sequence[Root], tuned: Tuned | None) -> list[str]:
    """How this run differs from the one that was tuned."""
    if tuned is None:
        return []
    ranks = int(os.environ.get("WORLD_SIZE") or 1)
    what = "loss was" if tuned.trains else "outputs were"
    unguarded = [f"its {what} not compared with FP32's when it was tuned"] if tuned.unguarded else []
    words = [f"tuned with {tuned.world_size} ranks, and these are {ranks}"] if ranks != tuned.world_size else []
    shapes = tuple(shape for root in roots for shape in root.seen.shapes)
    if tuned.shapes and shapes != tuned.shapes:
        words += [f"tuned with inputs of {_shapes(tuned.shapes)}, and these are {_shapes(shapes)}"]
    return words + unguarded


def _shapes(shapes: Sequence[Sequence[int]]) -> str:
    return ", ".join("x".join(map(str, shape)) or "one number" for shape in shapes)
