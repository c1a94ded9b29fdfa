"""A Python with the real torch, in which each piece of code runs in a process of its own: torch is imported once.

`ask(code)` runs `code` there and returns what it put into `answer`.
"""

import atexit
import json
import subprocess
import sys
from functools import cache
from typing import Any

from making import environ

_SERVER = """
import json, os, sys, traceback
import torch
for line in sys.stdin:
    reader, writer = os.pipe()
    if os.fork() == 0:
        names = {"torch": torch, "answer": None}
        try:
            exec(json.loads(line), names)
            told = {"answer": names["answer"]}
        except BaseException:
            told = {"fault": traceback.format_exc()}
        os.write(writer, json.dumps(told).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        print(pipe.read(), flush=True)
    os.wait()
"""


@cache
def _server() -> Any:
    words = [sys.executable, "-c", _SERVER, "serves_tests"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ())
    atexit.register(child.communicate)
    return child


def ask(code: str) -> Any:
    child = _server()
    child.stdin.write(json.dumps(code) + "\n")
    child.stdin.flush()
    told = json.loads(child.stdout.readline())
    assert "fault" not in told, told["fault"]
    return told["answer"]
