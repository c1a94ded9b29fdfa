"""Text that a stranger may plant to steer a terminal, and what of it arrived."""

import os
import pty
import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from making import H200, environ, profile, program, row

from gputune.advice import Choice
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.live.models import ModelKey
from gputune.profile import Profile

ESCAPING = (
    "\x1b]52;c;aGk=\x07\x1b[38;5;213m\x1b[8m\x9b2J\x7f\x08\r\u202e\u2066\u200b\ufeff[bold]x[/bold][link=file:///]"
)
"""A write to the clipboard, a colour, hidden text, a clearing of the screen, a step back, marks that turn the direction
of writing, characters without a width, and markup of rich's.
"""
NAME = "\x1b]2;title\x07\x1b[8m\u202e\u200b\udcff[bold]"
"""The same in a file's name, with a byte that is no UTF-8."""

_OF_RICH = re.compile(r"\x1b\[(?:[0-9]|[1-9][0-9])?(?:;(?:[0-9]|[1-9][0-9]))*m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A")
"""What rich sends to a terminal to colour tables and to replace a line."""


def unseen(said: bytes | str) -> set[str]:
    """The characters of what was printed that a terminal would not show, line breaks apart."""
    text = said.decode(errors="surrogateescape") if isinstance(said, bytes) else said
    return {char for char in text if not char.isprintable() and char != "\n"}


def unseen_on_terminal(said: bytes) -> set[str]:
    """The same, without what rich sends for its own colours: those of planted text are none of them."""
    text = said.decode(errors="surrogateescape")
    hidden = {code for code in ("\x1b[8m", "\x1b[38;5;213m") if code in text}
    return hidden | unseen(_OF_RICH.sub("", text.replace("\r\n", "\n").replace("\r\x1b[", "\x1b[")))


def planted_profile(word: str = ESCAPING) -> Profile:
    """A valid profile with the word in every place that holds text."""
    values: dict[str, Any] = {"amp_dtype": "float16", "omp_threads": 3, "dimension_multiple": {"bfloat16": 8}}
    chosen = {name: Choice(value=value, reason=word, evidence=(word,)) for name, value in values.items()}
    rows = tuple(
        row("matmul_alignment", "throughput", rate * (4096 + multiple), dtype="bfloat16", product="forward", dim="N",
            size=4096 + multiple, multiple=multiple)
        for multiple, rate in ((1, 1.0), (8, 7.0))
    )  # fmt: skip
    tuned = program(
        word[:40], created=word, models=(ModelKey(class_name=word, digest="1e23456789012345"),),
        settings={"amp_dtype": Choice(value="bfloat16", reason=word)}, gaps=(Gap(fact=word, reason=word),),
    )  # fmt: skip
    return replace(
        profile({}, replace(H200, gpu=word, driver=word, cpu=word, cuda=word)),
        created=word,
        settings=chosen,
        families={"convnet": {"channels_last": Choice(value=True, reason=word)}, word: {}},
        programs=(tuned,),
        measurements=(*rows, replace(rows[0], bench=word, metric=word, unit=word, device=word, params={word: word})),
        findings=(Finding(check=word, severity="ERROR", message=word, remedy=word, subject=word),),
        gaps=(Gap(fact=word, reason=word),),
    )


def on_terminal(words: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """The exit code of a command whose stdout and stderr are a terminal, and what arrived there."""
    master, slave = pty.openpty()
    got: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(master, 65536):
                got.append(part)
        except OSError:  # how Linux says that the other end is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        given = {"TERM": "xterm-256color", **(environ() if env is None else env)}
        done = subprocess.run(words, env=given, stdin=slave, stdout=slave, stderr=slave, timeout=120, check=False)
    finally:
        os.close(slave)
        reader.join(60)
        os.close(master)
    return done.returncode, b"".join(got)


def below(folder: Path) -> Path:
    """A folder with such a name."""
    made = folder / NAME
    made.mkdir()
    return made
