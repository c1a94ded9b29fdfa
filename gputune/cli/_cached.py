"""The profile of this machine that a probe keeps for `gputune apply auto`, and begins the next one from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputune.errors import MeasureError

if TYPE_CHECKING:
    from gputune.host import Host
    from gputune.profile import Fingerprint, Profile


def latest(fingerprint: Fingerprint) -> Profile | None:
    """The latest profile of this machine; None where TF32 is overridden, under which none is kept."""
    from gputune.facts.environment import TF32_OVERRIDE
    from gputune.host import Host
    from gputune.profile import places

    host = Host()
    return None if TF32_OVERRIDE in host.environ else places.latest(_key(fingerprint, host), host.environ)


def keep(profile: Profile, *, own: bool, quick: bool, partial: bool) -> None:
    """Save a profile where `gputune apply auto` looks, unless it would not suit other programs: because it is of the
    user's `own` dataset, of the `quick` budget, or `partial`, of benches asked for by name. Says why it is not kept.
    """
    from gputune.facts.environment import TF32_OVERRIDE
    from gputune.host import Host
    from gputune.host.stderr import say
    from gputune.profile import places

    host = Host()
    fingerprint = _key(profile.fingerprint, host)
    before = places.latest(fingerprint, host.environ)
    if partial and not _covers(profile, before):
        return
    reasons = {
        "its DataLoader is one dataset's; name it: gputune apply PROFILE": own,
        f"measured under {TF32_OVERRIDE}; unset {TF32_OVERRIDE}": TF32_OVERRIDE in host.environ,
        "a longer probe may have written the one there; probe in the standard budget": quick and before,
    }
    why = next((reason for reason, holds in reasons.items() if holds), None)
    try:
        if why is None:
            places.keep(profile, fingerprint, host.environ)
    except MeasureError as error:
        why = str(error)
    if why:
        say(f"not kept for gputune apply auto: {why}")


def _key(fingerprint: Fingerprint, host: Host) -> Fingerprint:
    """The fingerprint under which a profile is cached: as it is read without torch, where it is of the same device."""
    from gputune.runtime.local_fingerprint import local_fingerprint

    here = local_fingerprint(host)
    return here if here.device == fingerprint.device else fingerprint


def _covers(profile: Profile, cached: Profile | None) -> bool:
    """Whether a profile of some benches has, with what it kept of others, all that the cached one has."""
    known, measured = ({row.bench for row in one.measurements} if one else set() for one in (cached, profile))
    return bool(known) and measured >= known
