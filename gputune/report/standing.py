"""Which result of a tune stands in a profile where there are several of one program."""

from dataclasses import replace

from gputune.profile import Profile, Program, with_programs
from gputune.report.programs import FAILED, is_provisional, is_too_little, seeming, timed


def with_tuned(profile: Profile, *programs: Program) -> Profile:
    """The profile with results of tunes beside its own. Of one program the later stays, unless it leaves open what an
    earlier tune on the same device and torch was certain of.
    """
    known = {one.key: one for one in profile.programs}
    for program in sorted(programs, key=lambda one: one.created):
        before = known.get(program.key)
        differs = before and before.fingerprint.differences(program.fingerprint, ("device", "torch"))
        if before is None or differs or not _is_left_open(before, program):
            known[program.key] = program
    return with_programs(replace(profile, programs=()), known.values())


def _is_left_open(before: Program, program: Program) -> bool:
    """Whether an earlier result is certain and a later one is not, or chose nothing and has not tried what that did."""
    has_compared = program.settings or _tried(program).issuperset(before.settings)
    return _is_certain(before) and not (_is_certain(program) and has_compared)


def elsewhere(profile: Profile, program: Program) -> str | None:
    """The device on which the profile's own result for a program was measured, if it is another one."""
    device = next((one.fingerprint.device for one in profile.programs if one.key == program.key), None)
    return None if device == program.fingerprint.device else device


def _tried(program: Program) -> set[str]:
    """The settings that were compared, or failed."""
    return {name for row in timed(program) for name in row.params} | {
        gap.fact for gap in program.gaps if gap.cause == FAILED
    }


def _is_certain(program: Program) -> bool:
    return not (is_provisional(program) or seeming(program) or is_too_little(program))
