"""Whether there is a folder for temporary files, told where nothing can be written."""

from making import python

from gputune.resources.cpus import temporary_folder

NOTHING_CAN_BE_WRITTEN = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"


def test_there_is_one_here() -> None:
    assert temporary_folder()


def test_none_is_told() -> None:
    asks = "from gputune.resources.cpus import temporary_folder; print(temporary_folder())"
    assert python("-c", f"{NOTHING_CAN_BE_WRITTEN}\n{asks}").stdout == "False\n"
