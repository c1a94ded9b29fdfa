"""Progress: plain lines where nobody watches, one that changes on a terminal."""

import errno
import io
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from contextlib import redirect_stderr, suppress
from dataclasses import replace
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gputune.progress import READING, Progress
from gputune.report import progress as module
from gputune.report.progress import elapsed_words, shown, waiting, words

BEGUN = Progress(part="training_step", number=3, count=13)
WORKING = replace(BEGUN, doing="transformer, bfloat16")


class TestWords:
    def test_the_part_what_is_done_and_the_elapsed_time(self):
        assert words(BEGUN, 14.9) == "[3/13] training_step (14 s)"
        assert words(WORKING, 75.0) == "[3/13] training_step: transformer, bfloat16 (1 min 15 s)"
        assert words(Progress(part="reading"), 0) == "reading (0 s)"

    @pytest.mark.parametrize(
        ("seconds", "said"), [(0.9, "0 s"), (59.9, "59 s"), (60.0, "1 min 0 s"), (9000.0, "150 min 0 s")]
    )
    def test_the_elapsed_time_is_in_whole_seconds(self, seconds, said):
        assert elapsed_words(seconds) == said

    def test_what_is_too_long_is_cut_before_the_time(self):
        assert words(WORKING, 14, 34) == "[3/13] training_step: tr... (14 s)"
        assert words(WORKING, 14, 10) == "[3/13]..."
        assert words(WORKING, 14, 4) == ""

    def test_of_a_combination_the_middle_is_cut_out_so_that_it_is_told_from_another(self):
        part = Progress(part="measuring the program's own steps", number=1, count=3)
        arms = (
            "bfloat16 + compile + fused_optimizer + tf32",
            "bfloat16 + compile + fused_optimizer + tf32 + 8 workers",
        )
        assert [words(replace(part, doing=one), 75, 80) for one in arms] == [
            "[1/3] measuring the program's own steps: bfloat16 +...izer + tf32 (1 min 15 s)",
            "[1/3] measuring the program's own steps: bfloat16 +...+ 8 workers (1 min 15 s)",
        ]

    def test_what_takes_two_cells_a_character_is_cut_by_cells(self):
        assert words(Progress(part="日本語の部分"), 9, 17) == "日本語の... (9 s)"

    @pytest.mark.slow
    @given(st.text(), st.text(), st.integers(0, 60), st.floats(0, 1e6))
    def test_it_is_one_line_of_that_width(self, part, doing, width, elapsed):
        said = words(Progress(part=part, doing=doing), elapsed, width)
        assert cell_len(said) <= width
        assert said.isprintable()


class Full(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


class TestLines:
    def test_one_for_each_part(self, capsys):
        with shown() as tell:
            for told in (Progress(part=READING), BEGUN, WORKING, BEGUN):
                tell(told)
            tell(Progress(part="conv", number=4, count=13, doing="float32"))
        assert capsys.readouterr().err.splitlines() == [
            "gputune: [3/13] training_step (0 s)", "gputune: [4/13] conv (0 s)",
        ]  # fmt: skip

    def test_and_one_a_minute_while_it_goes_on(self, capsys):
        clock = [0.0]
        lines = module._Lines(lambda: clock[0])
        for clock[0] in range(0, 150, 10):
            lines.tell(WORKING)
        said = [f"gputune: {words(WORKING, elapsed)}" for elapsed in (60, 120)]
        assert capsys.readouterr().err.splitlines()[1:] == said

    def test_none_where_none_are_wanted(self, capsys):
        with shown(lines=False) as tell:
            tell(BEGUN)
        with waiting("reading"):
            pass
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("stream", [None, Full()])
    def test_a_stderr_that_takes_none_does_not_end_the_work(self, stream):
        with redirect_stderr(stream), shown() as tell:
            tell(BEGUN)


SCRIPT = """
import os, sys, threading, time
from dataclasses import replace
from gputune.progress import Progress
from gputune.report.progress import shown
told = Progress(part="training_step", number=3, count=13)
with shown() as tell:
    tell(told)
    tell(replace(told, doing="transformer, bfloat16 " + "long " * 20 if "long" in sys.argv else "transformer"))
    time.sleep(float(sys.argv[1]))
until = time.monotonic() + 10
while threading.active_count() > 1 and time.monotonic() < until:
    time.sleep(0.02)
print("threads", threading.active_count(), file=sys.stderr)
"""


class Terminal:
    def __init__(self, *words, columns=80, script=SCRIPT, **environ):
        self.leader, follower = os.openpty()
        ioctl(follower, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.child = subprocess.Popen(
            [sys.executable, "-c", script, *words], stdin=follower, stderr=follower,
            env={**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environ},
        )  # fmt: skip
        os.close(follower)
        self.text = b""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        with suppress(OSError):  # EIO: the child has ended
            while chunk := os.read(self.leader, 4096):
                self.text += chunk

    def wait_for(self, words):
        until = time.monotonic() + 30
        while words not in self.text and time.monotonic() < until:
            time.sleep(0.02)
        assert words in self.text

    def end(self):
        code = self.child.wait(60)
        self.reader.join(60)
        os.close(self.leader)
        return code

    @property
    def drawn(self):
        """The lines that were drawn in turn, without the codes between them."""
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", self.text.decode())
        return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


@pytest.mark.slow
class TestTerminal:
    def test_the_time_counts_up_while_nothing_is_told(self):
        terminal = Terminal("2.6")
        assert terminal.end() == 0
        *lines, threads = terminal.drawn
        seen = [re.fullmatch(r". \[3/13\] training_step: transformer \((\d+) s\)", line) for line in lines[1:]]
        counted = list(dict.fromkeys(int(one[1]) for one in seen if one))
        assert counted == sorted(counted)
        assert {0, 1, 2} <= set(counted)
        assert threads == "threads 1"

    def test_one_line_is_drawn_again_and_gone_at_the_end(self):
        terminal = Terminal("0.6")
        terminal.end()
        before, _, after = terminal.text.rpartition(b"\x1b[2K")
        assert before.count(b"\n") <= 1
        assert b"training_step" not in after
        assert b"\x1b[?25h" in terminal.text, "the cursor is shown again"

    @pytest.mark.parametrize("columns", [30, 50, 80])
    def test_it_is_cut_to_the_width(self, columns):
        terminal = Terminal("0.6", "long", columns=columns)
        assert terminal.end() == 0
        lines = [line for line in terminal.drawn if "training" in line]
        assert lines
        assert all(len(line) <= columns for line in lines)
        assert all(line.endswith(" (0 s)") for line in lines if "..." in line)

    def test_ctrl_c_leaves_no_line(self):
        terminal = Terminal("60")
        terminal.wait_for(b"transformer")
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.end() == -signal.SIGINT
        _, _, after = terminal.text.rpartition(b"\x1b[2K")
        assert b"training_step" not in after
        assert after.startswith(b"Traceback"), "what is printed next begins its line"

    def test_a_closed_stdout_stays_closed(self):
        told = SCRIPT.replace("print(", "sys.stderr.write(f'stdout {sys.stdout}\\n'); print(")
        terminal = Terminal("0.2", script=f"import sys; sys.stdout = None\n{told}")
        assert terminal.end() == 0
        assert b"stdout None" in terminal.text

    def test_a_terminal_that_goes_away_does_not_end_the_work(self, tmp_path):
        done = tmp_path / "done"
        script = SCRIPT.replace("print(", f"open({str(done)!r}, 'w').close(); print(")
        leader, follower = os.openpty()
        words_of = [sys.executable, "-c", script, "1.5"]
        child = subprocess.Popen(words_of, stderr=follower, env={**os.environ, "TERM": "xterm"})
        os.close(follower)
        os.read(leader, 10)
        os.close(leader)
        child.wait(60)
        assert done.exists()

    def test_one_that_cannot_draw_gets_lines(self):
        terminal = Terminal("0.1", TERM="dumb")
        assert terminal.end() == 0
        assert terminal.drawn[0] == "gputune: [3/13] training_step (0 s)"
