"""Applying a profile in a running process, through the same hook that the shim uses."""

import importlib
import os
import sys
from collections.abc import Mapping
from types import ModuleType

from gputune import knobs
from gputune.advice import Choice
from gputune.host import Host
from gputune.knobs import Knob, name_of
from gputune.live import flags, payload, private
from gputune.live.applied import Applied
from gputune.profile import Fingerprint, Profile
from gputune.runtime import advising, deciding
from gputune.runtime.advising import Values
from gputune.runtime.deciding import Terms
from gputune.runtime.environment import Chosen, choices, differences
from gputune.runtime.local_fingerprint import local_fingerprint


def apply_now(profile: Profile, terms: Terms) -> tuple[Values, dict[str, Values], tuple[Applied, ...]]:
    """Set what can still be set. Returns the general choices, those by kind of network or sample, and all rows."""
    torch = importlib.import_module("torch")  # first, so that the fingerprint is that of the torch in use
    here = local_fingerprint(Host())
    chosen = choices(profile, here, terms.but(own_threads=torch.get_num_threads()))
    rows = tuple(_row(knob, one, terms) for knob, one in chosen.items())
    set_here = {row.setting: row.after for row in rows if row.status != "skipped"}
    general = _in_code(profile, profile.settings, here, terms)
    families = {kind: _in_code(profile, choices, here, terms) for kind, choices in profile.families.items()}
    return set_here | general, families, rows


def inject_now(profile: Profile, terms: Terms) -> None:
    """Put what takes lines of a script into the models of this process, from their first steps on."""
    if given := advising.advice(profile, local_fingerprint(Host()), terms):
        _hook().inject(given.plain)


def rows_now() -> dict[str, Applied]:
    """By name, the rows as they are now of what gputune applied in this process or put into its models."""
    return {row["setting"]: Applied.from_plain(row) for row in _hook().now()}


def _row(setting: Knob, one: Chosen, terms: Terms) -> Applied:
    value = one.value
    row = deciding.refused(setting, value, one.differences, os.environ, terms)
    if row is None and setting.PHASE == "launch":
        row = flags.exported(setting, value, os.environ, payload.exported_by_us(os.environ))
        if row is None and not hasattr(setting, "apply"):
            row = flags.skipped(setting, "must be set before a process starts: gputune apply PROFILE -- CMD")
    if row is None:
        row = one.noted(Applied.from_plain(_hook().apply(name_of(setting), value)))
    return deciding.with_override(setting, row, os.environ)


def _in_code(profile: Profile, choices: Mapping[str, Choice], here: Fingerprint, terms: Terms) -> Values:
    values = {knobs.load(name): choice.value for name, choice in choices.items()}
    return {
        name_of(setting): value
        for setting, value in values.items()
        if setting.PHASE == "code"
        and not differences(profile, setting, here, terms)
        and not knobs.is_beyond(setting, value, terms.numerics)
    }


def _hook() -> ModuleType:
    """The hook that applies settings in this process: the shim's, which knows what it set, else gputune's own copy."""
    return sys.modules.get(f"{private.NAME}.live.hook") or importlib.import_module("gputune.live.hook")
