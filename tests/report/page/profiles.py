"""The profiles whose pages are tested, and a page taken apart."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from making import H200, choices, profile, program, row
from recorded import MACHINES

from gputune.advice import Choice
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.live.models import ModelKey
from gputune.measurement import Measurement
from gputune.profile import Guard, Profile, load
from gputune.report import page

ROOT = Path(__file__).parents[3]
HOSTILE = "</script><!--<script>alert(1)</script>\"' onload=alert(2) x='\x1b[2J\u202e]]>&lt;javascript:alert(3)"
"""What would end a script, a comment, an attribute or an element, steer a terminal, or turn the writing round."""


def tuned() -> Profile:
    recorded = json.loads((MACHINES / "nvidia-h200" / "tuned_scripts.json").read_text(encoding="utf-8"))
    arms = sorted(recorded["decoder_on_h200"][:8], key=lambda one: len(one["settings"]))
    rows = [_row(one, place) for place, one in enumerate(arms)]
    together = Choice(value="bfloat16", gain=6.01, interval=(5.96, 6.04), reason="all of it ran 6.01 times as fast")
    fp32 = tuple((9.0 - 0.7 * part, 9.3 - 0.6 * part) for part in range(10))
    guard = Guard(
        verdict="accepted", steps=200, reason="loss within FP32's own spread", fp32=fp32,
        tuned=tuple((low + high) / 2 for low, high in fp32),
    )  # fmt: skip
    made = program(
        settings={"amp_dtype": together, "compile": replace(together, value=True)}, measurements=tuple(rows),
        guard=guard, gaps=(Gap(fact="channels_last", reason="it has no 2-d convolutions"),),
    )  # fmt: skip
    return profile({}, programs=(made,))


def _row(one: dict[str, Any], place: int) -> Measurement:
    made = row("program", "throughput", 1.0, stage="final", **one["settings"])
    return replace(made, samples=tuple(one["rates"]), unit="steps/s", conditions={"peak_mib": 9000.0 - 700 * place})


def hostile(text: str = HOSTILE) -> Profile:
    """A profile that has the text wherever a file can have one that is shown."""
    named = text.replace("/", "")
    own = program(
        named, models=(ModelKey(class_name=text, digest="0" * 16),), settings=choices({"amp_dtype": "bfloat16"}),
        measurements=(
            row("program", "throughput", 1.0, stage=text), row("program", "throughput", 2.0, stage=text, x=text)
        ),
        guard=Guard(verdict="accepted", steps=9, reason=text, fp32=((1.0, 1.2), (2.0, 1.0)), tuned=(1.1, -1.0)),
        gaps=(Gap(fact=text, reason=text),),
    )  # fmt: skip
    made = profile(
        {"omp_threads": 3},
        fingerprint=replace(H200, gpu=text, driver=text, torch=text, cpu=text),
        families={text: {"compile": True}},
        programs=(own,),
        measurements=tuple(_hostile_rows(text)),
        findings=tuple(
            Finding(check=text, severity=severity, message=text, remedy=f"{text}  # {text}", subject=text)
            for severity in ("ERROR", "WARNING", "OK")
        ),
        gaps=(Gap(fact=text, reason=text),),
    )
    return replace(made, created=text)


def _hostile_rows(text: str) -> list[Measurement]:
    return [
        row("precision", "throughput", 1e300, dtype=text),
        row("precision", "throughput", 1e-300, dtype="float32"),
        row("precision", "relative_error", 1.0, operation=text, flags=text, override=text),
        row("matmul_peak", "steady", 1.7e308, dtype=text, m=1, n=1, k=1),
        row("matmul_alignment", "throughput", 1.0, dtype=text, product=text, dim="N", size=8, multiple=8),
        row("conv", "throughput", 1.0, dtype=text, kernel="3x3", channels=8, out=text, **{"pass": "forward"}),
        row("attention", "throughput", 1.0, dtype=text, head=64, length=64, backend=text),
        row("matmul_shapes", "throughput", 1.0, shape=text, dtype=text, m=1, n=1, k=1),
        row("side_by_side", "matmul", 5e-324, device=text),
        row("dataset", "throughput", 1.0, kind="dataset", workers=0, batch=8, step_ms=3),
    ]


def cpu() -> Profile:
    return load(ROOT / "tests" / "profile" / "files" / "0.1.0-cpu.yaml", tell=lambda line: None)


def h200() -> Profile:
    return load(ROOT / "profiles" / "nvidia-h200.yaml")


PROFILES = {"h200": h200, "cpu": cpu, "tuned": tuned, "hostile": hostile}
"""What a page is made of, by name."""


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    within: tuple[str, ...] = field(default=())


class Parsed(HTMLParser):
    """The elements of a page in their order, each with the text directly in it and the tags around it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.nodes: list[Node] = []
        self.faults: list[str] = []
        self._open: list[Node] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{one.tag}> is not closed" for one in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"<{tag}> has an attribute twice: {names}")
        node = Node(tag, {name: value or "" for name, value in attrs}, within=tuple(one.tag for one in self._open))
        self.nodes.append(node)
        if tag not in ("meta", "link", "input", "br"):
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop().tag != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].text += data

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment: {data[:40]}")

    def all(self, *tags: str) -> list[Node]:
        return [one for one in self.nodes if one.tag in tags]


def page_of(name: str) -> str:
    return page.text(PROFILES[name](), f"{name}.yaml")
