"""gputune killed at moments that are drawn: by TERM, INT, HUP and KILL, itself or its whole group, once or twice.

GPUTUNE_TEST_KILLS kills, 200 for the whole table, of GPUTUNE_TEST_KILLS_SEED: every verb gets its share of them, and
more than FEW those that last longest, too.
"""

import os
import subprocess

import pytest
import random_kills
from random_kills import VERBS

pytestmark = pytest.mark.slow

FEW = 16
COUNT = int(os.environ.get("GPUTUNE_TEST_KILLS", str(FEW)))
SEED = int(os.environ.get("GPUTUNE_TEST_KILLS_SEED", "1"))
SHORT = [name for name, verb in VERBS.items() if not verb.slow]
DRAWN = random_kills.draw(COUNT, SEED, list(VERBS) if COUNT > FEW else SHORT)


@pytest.mark.exhaustive
def test_a_kill_leaves_an_old_or_a_whole_profile_and_nothing_else_and_the_next_start_works() -> None:
    if subprocess.run([*random_kills.MOUNTING, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no private mounts here")
    found = random_kills.all_of(DRAWN)
    bad = [str(left) for left in found if left.wrong]
    assert not bad, f"seed {SEED}: " + "\n".join(bad)
    assert sum(left.ended for left in found) < COUNT / 2, "most have to be hit while they run"


def test_the_kills_are_spread_over_the_signals_and_verbs() -> None:
    drawn = random_kills.draw(200, SEED)
    assert drawn == random_kills.draw(200, SEED) != random_kills.draw(200, SEED + 1)
    assert {kill.verb for kill in drawn} == set(VERBS)
    for number in random_kills.SIGNALS:
        own = [kill for kill in drawn if kill.signal == number]
        assert len(own) == 50
        assert {kill.whole_group for kill in own} == {True, False}
        assert {kill.part for kill in own} == {"start", "all"}
        assert {kill.again_after is None for kill in own} == {True, False}
