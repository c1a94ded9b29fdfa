"""This process: its user, its limits, its folders."""

import pytest
from recorded import facts_of

LIMITS = "Limit                     Soft Limit           Hard Limit           Units     \n"


def process(**overrides):
    return facts_of("cpu-only", **overrides).process


def limits(files="1024", locked="65536"):
    rows = f"Max open files            {files}  1048576  files\nMax locked memory         {locked}  unlimited  bytes\n"
    return process(files={"/proc/self/limits": LIMITS + rows})


def test_a_recorded_machine():
    found = process()
    assert (found.uid, found.user, found.open_files, found.locked_bytes) == (0, "root", 20000, None)
    assert all(folder.writable for folder in found.folders)


def test_the_soft_limits_count_and_no_limit_is_none():
    for found, soft in ((limits(), (1024, 65536)), (limits("unlimited", "unlimited"), (None, None))):
        assert (found.open_files, found.locked_bytes) == soft


@pytest.mark.parametrize("text", [None, "", "garbage", LIMITS, "Max open files  many  many  files\n"])
def test_a_limit_that_cannot_be_read_is_a_gap(text):
    found = facts_of("cpu-only", files={"/proc/self/limits": text})
    assert {"process.open_files", "process.locked_bytes"} == {gap.fact for gap in found.gaps}


def test_a_user_id_without_a_name():
    found = process(user=(1234, None, None), environ={"USER": "someone"})
    assert (found.uid, found.user, found.user_variable) == (1234, None, "someone")
    assert process(user=(1234, None, None)).user_variable is None


@pytest.mark.parametrize(
    ("environ", "paths"),
    [
        (
            {},
            {
                "HOME": "/root",
                "XDG_CACHE_HOME": "/root/.cache",
                "HF_HOME": "/root/.cache/huggingface",
                "TMPDIR": "/tmp",
            },
        ),
        ({"XDG_CACHE_HOME": "/c"}, {"TORCH_HOME": "/c/torch", "HF_HOME": "/c/huggingface"}),
        ({"HF_HOME": "/data/hf", "TMPDIR": "/scratch"}, {"HF_HOME": "/data/hf", "TMPDIR": "/scratch"}),
    ],
)
def test_where_things_are_kept(environ, paths):
    found = {folder.variable: folder.path for folder in process(environ=environ).folders}
    assert paths.items() <= found.items()
