"""A program whose process answers nonsense: a failure of one line, whatever it says."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from making import environ

from gputune.live.orders import Done, Hello, Passed, Record, TimeBlock
from gputune.resources.messages import encode
from gputune.trials.command import RunningCommand
from gputune.trials.failure import RunFailed
from gputune.trials.start import Start

pytestmark = pytest.mark.slow
HELLO = Hello(pid=-1, entry="train.py", torch="2.11.0", device="cpu", rank=0, world=1, local=1)
SAYS = """
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect(json.loads(os.environ["GPUTUNE_TUNE"])["socket"])
orders = connection.makefile("rb")
for line in json.loads(sys.argv[1]):
    if line is None:
        orders.readline()
    else:
        connection.sendall(line.encode())
orders.read()
"""


def running(folder: Path, *lines: bytes | None) -> RunningCommand:
    """A program that sends these lines, and waits for an order where one is None."""
    words = json.dumps([line.decode() if line is not None else None for line in lines])
    with (folder / "log").open("wb") as log:
        command = (sys.executable, "-c", SAYS, words)
        return RunningCommand(Start(command=command, environ=environ(), folder=folder, log=log), "time")


def test_answers_of_the_right_type_are_taken(tmp_path: Path) -> None:
    timed: Any = {"type": "BlockTimed", "seconds": 2, "peak_bytes": None}
    words = encode(HELLO), encode(Done()), None, encode(Passed()), json.dumps(timed).encode() + b"\n"
    with running(tmp_path, *words) as started:
        started.first(Done)
        assert started.ask(10, TimeBlock(steps=4)).seconds == 2.0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"nonsense\n", "Expecting value: line 1 column 1 (char 0)"),
        (b"[1]\n", "it is not a message of gputune"),
        (b'{"type": "BlockTimed", "seconds": "2", "peak_bytes": null}\n', 'seconds: a number expected, "2" given'),
        (b'{"type": "BlockTimed", "peak_bytes": null}\n', "seconds: this key is missing"),
        (b'{"type": "Done", "a\\nb": 1}\n', "a b: there is no such key"),
        (b'{"type": "Done"}\n', "BlockTimed expected, Done given"),
        (encode(HELLO), "BlockTimed expected, Hello given"),
        (b"[" * 100_000 + b"\n", "it is nested too deeply"),
    ],
)
def test_an_invalid_answer_is_a_line(tmp_path: Path, line: bytes, why: str) -> None:
    with running(tmp_path, encode(HELLO), encode(Done()), None, line) as started:
        started.first(Done)
        with pytest.raises(RunFailed) as failed:
            started.ask(10, TimeBlock(steps=4))
    assert str(failed.value) == f"it sent gputune an invalid message: {why}"


@pytest.mark.parametrize("lines", [(encode(HELLO) + b"{}\n",), (encode(HELLO), b"{}\n")])
def test_so_is_an_invalid_message_before_any_order(tmp_path: Path, lines: tuple[bytes, ...]) -> None:
    with running(tmp_path, *lines) as started, pytest.raises(RunFailed, match="invalid message"):
        started.first(Done)


def test_who_says_no_hello_is_not_heard(tmp_path: Path) -> None:
    with running(tmp_path, b'{"type": "Hello"}\n') as started, pytest.raises(RunFailed) as failed:
        started.first(Done)
    assert failed.value.how == "finished"


def test_an_invalid_message_at_the_end_is_no_failure(tmp_path: Path) -> None:
    with running(tmp_path, encode(HELLO), encode(Done()), None, b"nonsense\n") as started:
        started.first(Done)
        started.finish()


@pytest.mark.parametrize("order", [Record(steps=2), TimeBlock(steps=2)])
def test_a_raised_exception_is_its_words(tmp_path: Path, order: Any) -> None:
    raised = b'{"type": "Raised", "text": "RuntimeError: no", "out_of_memory": false}\n'
    with running(tmp_path, encode(HELLO), encode(Done()), None, raised) as started:
        started.first(Done)
        with pytest.raises(RunFailed, match=r"^it raised RuntimeError: no$"):
            started.ask(10, order)
