"""The one command that measures again what the provisional choices of a probe rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gputune.resources.printable import quoted

if TYPE_CHECKING:
    from gputune.profile import Profile

OF_DATASET = ("--dataset", "--batch-size", "--step-ms")


def command(profile: Profile, given: Mapping[str, object], *, completes: bool) -> str | None:
    """Two lines for a reader; None where nothing is provisional.

    `given` has the probe's options with their values; what is off or not given is None, False or empty. Where the
    probe `completes` the file that it replaces, only the benches that are waited for are named.
    """
    from gputune.recommend import provisional

    waiting = provisional(profile.settings, profile.families)
    if not waiting:
        return None
    options = {name: value for name, value in given.items() if value}
    if completes:
        benches = list(dict.fromkeys(bench for names in waiting.values() for bench in names))
        left_out = ("--only", "--shapes", *(() if "dataset" in benches else OF_DATASET))
        options = {
            "--only": ",".join(benches),
            **({"--dataset": "FILE.py:CALLABLE"} if "dataset" in benches else {}),
            **{name: value for name, value in options.items() if name not in left_out},
        }
    words = [part for name, value in options.items() for part in ([name] if value is True else [name, str(value)])]
    return f"Provisional: {', '.join(waiting)}. Once this machine is idle:\n    gputune probe {quoted(*words)}"
