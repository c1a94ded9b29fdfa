"""Whether there is a folder for temporary files, told where nothing can be written."""

import pytest
from making import python

NOTHING_CAN_BE_WRITTEN = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"


@pytest.mark.parametrize(("before", "there"), [("", True), (NOTHING_CAN_BE_WRITTEN, False)], ids=["here", "nowhere"])
def test_whether_there_is_one_is_told(before: str, there: bool) -> None:
    asks = "from gputune.resources.room import temporary_folder; print(temporary_folder())"
    assert python("-c", f"{before}\n{asks}").stdout == f"{there}\n"
