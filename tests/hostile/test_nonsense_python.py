"""`--python` names anything: a program that answers nonsense, one that cannot be started, or none. One line says so.

An answer counts only as a whole: nothing is written, and nothing is found healthy, by what another program said.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from forked import gputune, refusal
from making import executable

from gputune.host.child import MOST_BYTES

SAYS = '#!/bin/sh\neval "to=/proc/self/fd/\\${$#}"\n'
"""The beginning of a program that finds, as any that is asked does, where to write its answer."""

READ: dict[str, Any] = {"value": True, "default": False}
ROW: dict[str, Any] = {
    "setting": "cudnn_tf32", "before": None, "after": True, "status": "applied", "source": "profile", "why": "so",
    "reasons": [{"reason": "default", "arguments": []}],
}  # fmt: skip
STATUS: dict[str, Any] = {
    "torch": "2.9.0", "python": "/usr/bin/python3", "gpu": None, "tf32": False,
    "rows": [ROW], "reads": {"cudnn_tf32": READ},
}  # fmt: skip
"""What a Python with torch answers to `gputune status`."""

NOT_STARTED = {
    "a text file": b"This is no program.\n",
    "an empty file": b"",
    "a script of no interpreter": b"#!/no/such/interpreter\n",
    "a binary of no machine": b"\x7fELF and nothing more",
}
NO_ANSWER = {
    "no answer, and success": "",
    "no answer, and a failure": "exit 7",
    "no answer, but an end to it": 'exec sh -c "sleep 60" 9>&- 8>&- 7>&- 6>&- 5>&- 4>&- 3>&-',
    "random bytes": 'head -c 5000 /dev/urandom > "$to"',
    "more than any answer takes": 'exec cat /dev/zero > "$to"',
    "more lines than any answer takes": "yes '{}' > \"$to\"",
    "a list without an end": "printf '[%060000d' 0 | tr 0 '[' > \"$to\"",
    "a number": 'echo 3 > "$to"',
    "a list": "echo '[1]' > \"$to\"",
    "half an answer": 'printf \'{"version": [3, 12], "fold\' > "$to"',
}
OTHER_SHAPES: dict[str, dict[str, Any]] = {
    "an empty object": {},
    "gaps that are a list": {"gaps": [1]},
    "gaps that are null": {"gaps": None},
    "an error of no system": {"not_started": 10**30},
    "a next that is a list": {"next": []},
    "a fault that is none": {"fault": {"a": 1}},
    "a version that is text": {"version": "3.12", "folder": "/tmp"},
    "a folder that is a number": {"version": [3, 12], "folder": 7},
    "rows that are a number": {**STATUS, "rows": 3},
    "reads of a row without a status": {**STATUS, "reads": {"cudnn_tf32": {"fault": {"setting": "a"}}}},
}


def interpreter(folder: Path, text: str | bytes) -> str:
    path = executable(folder / "python", "")
    path.write_bytes(text if isinstance(text, bytes) else f"{SAYS}{text}\n".encode())
    return str(path)


def answering(folder: Path, answer: Any) -> str:
    (folder / "answer").write_text(json.dumps(answer))
    return interpreter(folder, f'cat "{folder}/answer" > "$to"')


@pytest.mark.slow
@pytest.mark.parametrize("program", [*NOT_STARTED, *NO_ANSWER])
def test_a_program_that_is_no_python(program: str, tmp_path: Path) -> None:
    path = interpreter(tmp_path, NOT_STARTED.get(program) or NO_ANSWER.get(program, b""))
    assert path in refusal("install-hook", "--python", path)


@pytest.mark.parametrize(("verb", "code"), [("install-hook", 2), ("status", 3)])
@pytest.mark.parametrize("answer", OTHER_SHAPES)
def test_an_answer_to_another_question(answer: str, verb: str, code: int, tmp_path: Path) -> None:
    path = answering(tmp_path, OTHER_SHAPES[answer])
    assert path in refusal(verb, "--python", path, code=code)


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("program", [*NOT_STARTED, *NO_ANSWER])
def test_a_machine_is_not_found_healthy_with_a_program_that_is_no_python(program: str, tmp_path: Path) -> None:
    path = interpreter(tmp_path, NOT_STARTED.get(program) or NO_ANSWER.get(program, b""))
    assert path in refusal("check", "--only", "torch_version", "--python", path)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [name for name, answer in OTHER_SHAPES.items() if answer.keys() != STATUS.keys()])
def test_nor_with_an_answer_to_another_question(answer: str, tmp_path: Path) -> None:
    path = answering(tmp_path, OTHER_SHAPES[answer])
    assert path in refusal("check", "--only", "torch_version", "--python", path)


@pytest.mark.parametrize("verb", ["install-hook", "status", "check"])
@pytest.mark.parametrize("name", [".", "no-such-python", "loop", "a file", "a\nb", "\x1b[31m"])
def test_what_is_no_program_at_all(name: str, verb: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "a file").write_text("print(1)\n")
    fault = refusal(verb, "--python", f"./{name}", cwd=tmp_path)
    assert "no executable has that name" in fault
    assert "\x1b" not in fault


@pytest.mark.parametrize("folder", ["", ".", "packages", "/\0", "/\ud800", 7, None, ["/tmp"]], ids=ascii)
def test_a_hook_is_written_into_no_folder_that_is_none(folder: Any, tmp_path: Path) -> None:
    path = answering(tmp_path, {"version": [3, 12], "folder": folder})
    (tmp_path / "packages").mkdir()
    refusal("install-hook", "--python", path, cwd=tmp_path)
    assert not list(tmp_path.rglob("*.pth"))


WRONG_TYPES: dict[str, Any] = {
    "torch": [1],
    "python": None,
    "gpu": {"a": 1},
    "tf32": "no",
    "rows": [[]],
    "reads": {"no_such_setting": READ},
    "errors": {"no such operation": 0.1},
}
WRONG_ROWS: dict[str, Any] = {
    "setting": ["cudnn_tf32"],
    "after": {"a": [1]},
    "status": "perfect",
    "source": 3,
    "reasons": [{"reason": "elsewhere", "arguments": "abc"}],
}


@pytest.mark.parametrize(
    "change",
    [
        *({name: value} for name, value in WRONG_TYPES.items()),
        *({"rows": [{**ROW, name: value}]} for name, value in WRONG_ROWS.items()),
        {"rows": [{**ROW, "reasons": [{"reason": "elsewhere_not", "arguments": [3]}]}]},
        {"rows": [{**ROW, "reasons": [{"reason": "beyond_numerics", "arguments": ["a"]}]}]},
        {"reads": {"cudnn_tf32": {"value": [[]], "default": None}}},
        {"reads": {"cudnn_tf32": {"fault": {**ROW, "status": "perfect"}}}},
    ],
    ids=str,
)
def test_a_status_with_one_value_of_another_type(change: dict[str, Any], tmp_path: Path) -> None:
    path = answering(tmp_path, {**STATUS, **change})
    assert f"{path} answered something else" in refusal("status", "--python", path, code=3)


def test_a_whole_answer_is_shown(tmp_path: Path) -> None:
    done = gputune("status", "--python", answering(tmp_path, STATUS))
    assert (done.returncode, done.stderr) == (0, "")
    assert "cudnn_tf32" in done.stdout


def test_a_flood_takes_neither_memory_nor_time(tmp_path: Path) -> None:
    path = interpreter(tmp_path, 'exec cat /dev/zero > "$to"')
    fault = refusal("status", "--python", path, code=3)
    assert f"answered more than {MOST_BYTES} bytes" in fault
