"""Applying a profile in a running process: torch's flags through the shim's own hook, so that there is one way to set them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

from gputune import settings
from gputune.host import Host
from gputune.inject import private
from gputune.profile import Profile
from gputune.runtime.applied import Applied, Terms, differences, exported, in_script, refusal, skipped, with_defeat
from gputune.runtime.local_fingerprint import fingerprint_here
from gputune.runtime.numerics import beyond
from gputune.settings import Value

Choices = dict[str, Value]


def decide(profile: Profile, terms: Terms) -> tuple[Choices, dict[str, Choices], tuple[Applied, ...]]:
    """Set what can be set now. Returns what holds in general, what holds by kind of network, and a row for each setting."""
    importlib.import_module("torch")  # first, so that the fingerprint tells this very torch
    here = fingerprint_here(Host())
    named = {*profile.settings, *(name for choices in profile.families.values() for name in choices)}
    differing = {name: differences(profile, name, here, terms) for name in named}
    rows = tuple(
        _row(name, choice.value, refusal(name, choice.value, differing[name], os.environ, terms))
        for name, choice in profile.settings.items()
    )
    holding = {
        kind: {
            name: choice.value
            for name, choice in choices.items()
            if not differing[name] and not beyond(name, choice.value, terms.numerics)
        }
        for kind, choices in {"": profile.settings, **profile.families}.items()
    }
    return _in_force(holding.pop(""), rows), holding, rows


def rows_now() -> dict[str, Applied]:
    """The settings that were applied in this process, by `gputune apply` or `gputune.apply`, as they stand now: `changed-later` where
    the program has set something else since.
    """
    hook = sys.modules.get("_gputune.inject.hook")
    return {row["setting"]: Applied(**row) for row in hook.now()} if hook else {}


def _row(name: str, value: Value, why: str | None) -> Applied:
    setting = settings.load(name)
    if why:
        return skipped(name, why)
    if setting.PHASE == "code":
        return in_script(name, value)
    already = exported(name, value, os.environ) if setting.PHASE == "launch" else None
    if already:
        return already
    if not hasattr(setting, "apply"):
        return skipped(name, "takes effect before a process starts: gputune apply PROFILE -- CMD")
    late = ", where its variable would come too late" if setting.PHASE == "launch" else ""
    return with_defeat(Applied(**private.hook().apply_values({name: value}, f"in this process{late}")[0]), os.environ)


def _in_force(holding: Mapping[str, Value], rows: Sequence[Applied]) -> Choices:
    """What holds now: for torch's flags what they read, for lines in the script what was chosen and holds here."""
    flags = {row.setting: row.after for row in rows if row.status != "skipped"}
    return flags | {name: value for name, value in holding.items() if settings.load(name).PHASE == "code"}
