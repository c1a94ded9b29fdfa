from dataclasses import replace

import pytest
from recorded import facts_of, found

from gputune.checks import cache_folders
from gputune.facts import Gap, Process

THERE = {"/root/.profile": "", "/tmp/x": "", "/data/hub/x": ""}


def finding(closed, **environ):
    [only] = found(cache_folders, files=THERE, closed=closed, environ=environ)
    return only


def test_folders_that_can_be_written_to_are_fine():
    fine = finding(())
    assert fine.severity == "OK"
    assert fine.message == "HOME, XDG_CACHE_HOME, TORCH_HOME, HF_HOME, TMPDIR can be written to"


def test_a_home_that_cannot_be_written_to_takes_the_caches_with_it():
    warned = finding(["/root"])
    assert (warned.severity, warned.subject) == ("WARNING", "HOME")
    assert "HOME (/root), XDG_CACHE_HOME (/root/.cache), TORCH_HOME (/root/.cache/torch)" in warned.message
    assert "TMPDIR" not in warned.message
    assert warned.remedy.startswith("mkdir -p /tmp/cache && export XDG_CACHE_HOME=/tmp/cache  # ")


@pytest.mark.parametrize("fault", [{"closed": ["/root"]}, {"environ": {"HOME": None}, "user": (1234, None, None)}])
def test_home_is_of_no_account_once_the_caches_are_elsewhere(fault):
    moved = fault.get("environ", {}) | {"XDG_CACHE_HOME": "/tmp/cache"}
    [fine] = found(cache_folders, files=THERE, **fault | {"environ": moved})
    assert fine.severity == "OK"
    assert fine.message == "XDG_CACHE_HOME, TORCH_HOME, HF_HOME, TMPDIR can be written to"


def test_only_the_folder_that_is_closed_is_named():
    warned = finding(["/data/hub"], TORCH_HOME="/data/hub")
    assert (warned.severity, warned.subject) == ("WARNING", "TORCH_HOME")
    assert warned.message == "cannot be written to: TORCH_HOME (/data/hub)"
    assert warned.remedy.startswith("mkdir -p /tmp/cache/torch && export TORCH_HOME=/tmp/cache/torch  # ")


def test_a_root_that_is_read_only_closes_home_and_tmp():
    warned = finding(["/"])
    assert (warned.severity, warned.subject) == ("WARNING", "HOME")
    assert "HOME (/root), " in warned.message
    assert "TMPDIR (/tmp)" in warned.message
    assert warned.remedy.startswith("docker run --tmpfs /tmp IMAGE  # ")


def test_a_container_that_gives_its_user_the_root_for_a_home():
    warned = finding(["/"], HOME="/")
    assert "HOME (/), XDG_CACHE_HOME (/.cache), TORCH_HOME (/.cache/torch)" in warned.message
    assert warned.remedy.startswith("docker run --tmpfs /tmp IMAGE  # ")


def test_a_folder_for_temporary_files_has_to_be_there():
    warned = finding((), TMPDIR="/data/hub/none")
    assert (warned.severity, warned.subject) == ("WARNING", "TMPDIR")
    assert warned.message == "cannot be written to: TMPDIR (/data/hub/none)"
    assert warned.remedy.startswith("mkdir -p /root/.cache/tmp && export TMPDIR=/root/.cache/tmp  # ")


def test_temporary_files_go_to_tmp_unless_told_otherwise():
    assert finding(["/tmp"]).message == "cannot be written to: TMPDIR (/tmp)"
    assert finding(["/tmp"], TMPDIR="/data/hub").severity == "OK"


def test_a_folder_that_does_not_exist_yet_can_be_made_where_the_one_above_it_is_open():
    assert finding((), HF_HOME="/data/hub/hf/deeper").severity == "OK"
    assert finding(["/data/hub"], HF_HOME="/data/hub/hf/deeper").severity == "WARNING"


def test_no_home_is_a_warning():
    [warned] = found(cache_folders, environ={"HOME": None}, user=(1234, None, None))
    assert warned.severity == "WARNING"
    assert warned.message == "cannot be written to: HOME (not set)"
    assert warned.remedy.startswith("mkdir -p /tmp/cache && export XDG_CACHE_HOME=/tmp/cache  # ")


def test_without_the_variable_programs_take_the_user_s_home():
    assert finding((), HOME=None).severity == "OK"


def test_folders_that_cannot_be_read_are_unknown():
    facts = replace(facts_of(), process=Process(), gaps=(Gap(fact="process.folders", reason="ValueError: odd"),))
    [unread] = cache_folders.check(facts, ())
    assert unread.severity == "UNKNOWN"
    assert "ValueError: odd" in unread.message


def test_without_a_gpu_it_is_asked_all_the_same():
    assert [one.severity for one in found(cache_folders, "cpu-only", files=THERE, closed=["/root"])] == ["WARNING"]


@pytest.mark.parametrize(("space", "severity"), [(0, "WARNING"), ((64 << 20) - 1, "WARNING"), (64 << 20, "OK")])
def test_a_folder_without_room_is_as_good_as_closed(space, severity):
    [one] = found(cache_folders, space=space)
    assert one.severity == severity
    assert ("less than 64 MiB is left in: HOME (/root)" in one.message) == (severity == "WARNING")


def test_outside_a_container_nothing_has_to_be_mounted():
    [one] = found(cache_folders, files={"/.dockerenv": None}, closed=["/root"])
    assert one.remedy == "mkdir -p /tmp/cache && export XDG_CACHE_HOME=/tmp/cache"
    [one] = found(cache_folders, files={"/.dockerenv": None}, closed=["/"])
    assert one.remedy.startswith("df -h  # ")


def test_a_full_folder_is_no_place_to_move_to_and_home_is_never_moved():
    [one] = found(cache_folders, space=0, environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert one.remedy.startswith("spec: {volumes: [{name: tmp, emptyDir: {}}], containers: [{name: NAME, ")
    assert "HOME=" not in one.remedy
