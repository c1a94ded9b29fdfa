from dataclasses import replace

import pytest
from recorded import facts_of, found

from gputune.checks import unknown_uid
from gputune.facts import Gap, Process
from gputune.host import Unreadable

NAMELESS = (1234, None, None)


def finding(torch=None, **environ):
    [only] = found(unknown_uid, user=NAMELESS, torch={"torch": torch or "2.12.1+cu130"}, environ=environ)
    return only


@pytest.mark.parametrize("torch", ["2.12.1+cu130", "2.4.0", "main"])
def test_an_id_without_a_name_is_a_warning(torch):
    warned = finding(torch)
    assert warned.severity == "WARNING"
    assert "user id 1234 has no name" in warned.message
    assert warned.remedy.startswith("export USER=uid1234  # ")
    assert "docker run --env USER=user IMAGE" in warned.remedy


def test_a_torch_that_does_not_answer_may_be_an_older_one():
    assert [one.severity for one in found(unknown_uid, user=NAMELESS, torch=Unreadable("no answer"))] == ["WARNING"]


@pytest.mark.parametrize("torch", ["2.13.0+cu130", "2.13.0a0+git1", "2.14.0", "3.0.0"])
def test_a_newer_torch_can_do_without(torch):
    fine = finding(torch)
    assert fine.severity == "OK"
    assert f"which torch {torch} does not need" in fine.message


@pytest.mark.parametrize("variable", ["LOGNAME", "USER", "LNAME", "USERNAME", "TORCHINDUCTOR_CACHE_DIR"])
def test_a_variable_stands_in_for_the_name(variable):
    fine = finding(**{variable: "me"})
    assert fine.severity == "OK"
    assert "1234 has no name" in fine.message


def test_an_empty_variable_stands_in_for_nothing():
    assert finding(USER="").severity == "WARNING"


def test_a_user_with_a_name_is_fine():
    [fine] = found(unknown_uid)
    assert (fine.severity, fine.message) == ("OK", "user root (0)")


def test_a_user_that_cannot_be_read_is_unknown():
    facts = replace(facts_of(), process=Process(), gaps=(Gap(fact="process.user", reason="ImportError: pwd"),))
    [unread] = unknown_uid.check(facts, ())
    assert unread.severity == "UNKNOWN"
    assert "ImportError: pwd" in unread.message
