"""Progress: plain lines where nobody watches, one that changes on a terminal."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from gputune.probing import Progress
from gputune.report.progress import shown

SCRIPT = """
from gputune.probing import Progress
from gputune.report.progress import shown
with shown() as show:
    for doing in ("", "bfloat16 N"):
        show(Progress(number=2, count=5, bench="matmul_alignment", doing=doing, seconds=20))
        import time; time.sleep(0.3)
"""


def test_a_line_for_each_bench_elsewhere(capsys):
    with shown() as show:
        show(Progress(number=1, count=5, bench="precision", doing="", seconds=4))
        show(Progress(number=1, count=5, bench="precision", doing="detail", seconds=4))
    assert capsys.readouterr().err == "gputune: [1/5] precision, up to 4 s\n"


@pytest.mark.slow
def test_the_details_on_a_terminal():
    leader, follower = os.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stderr=follower, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    )
    os.close(follower)
    text = b""
    with suppress(OSError):  # EIO: the child has ended
        while chunk := os.read(leader, 4096):
            text += chunk
    assert child.wait(60) == 0
    assert b"matmul_alignment, up to 20 s: bfloat16 N" in text
