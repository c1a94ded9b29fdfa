"""The answer at the top of the page: what is gained and how, what is wrong, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator

from gputune.report.answer import Answer, By, Gain, Reach, Step
from gputune.report.answer_words import name_of, times
from gputune.report.page import findings
from gputune.report.page.bars import draw
from gputune.report.page.commands import command
from gputune.report.page.markup import TIMES, Markup, element, joined
from gputune.report.pictures import Bars, Mark
from gputune.resources.printable import quoted

HOW = {
    By.APPLY: "by `gputune apply` alone",
    By.MIXED: "by `gputune tune`, or by `gputune apply --numerics mixed`",
    By.SCRIPT: "by lines of the script",
    By.LOADER: "by `gputune tune`, by `--inject-dataloader`, or by a line of the script",
    By.LOADER_LINES: "by `gputune tune`, or by a line of the script",
    By.PROGRAM: "by `gputune apply` alone, which recognises it",
}
WITHOUT = {
    By.NONE: "nothing to gain: torch's defaults are as fast",
    By.UNCERTAIN: "no certain gain of all settings together",
    By.UNMEASURED: "not measured",
    By.UNKNOWN: "chosen by an earlier probe, whose figures are not in this file",
    By.PROVISIONAL: "the machine was too busy to tell",
}
STEPS = {
    Step.REPAIR: "First repair what is wrong",
    Step.LOOK: "First look at what is wrong",
    Step.AGAIN: "Measure again what a busy machine hid, once it is idle",
    Step.MEASURE: "Measure: most is not known yet",
    Step.MEASURE_OTHERS: "Measure for all other programs: what was tuned stays",
    Step.RETRY: "Measure once more what gave no result",
    Step.PROGRAM: "Run the program that was tuned",
    Step.APPLY: "Run your script with the settings",
    Step.MIXED: "Run your script with the settings, mixed precision and all",
    Step.LOADER: "Run your script with workers for the DataLoaders that have none",
    Step.HERE: "Measure this machine, which is another than the one measured",
    Step.TUNE: "Tune your own script, which is better than any advice in general",
    Step.TUNE_ANYWAY: "Nothing is to be applied here; your own script may differ: tune it",
}
ALONE = "gputune apply alone"
MIXED = "--numerics mixed"


def section(answer: Answer) -> Iterator[Markup]:
    """The parts of the answer, the most urgent first."""
    if answer.wrong:
        yield element("h3", "What is wrong")
        yield findings.listed(answer.wrong)
    figures = [gain for gain in answer.gains if gain.times is not None and gain.by in HOW]
    if figures:
        yield element("h3", "What is gained, in speed over torch's defaults")
        yield element("ul", *map(_card, figures), class_="cards")
    rest = [element("li", f"{name_of(one)}: ", coded(_why_not(one))) for one in answer.gains if one not in figures]
    if rest:
        yield element("ul", *rest, class_="rest")
    if not answer.gains:
        yield element("p", "Nothing was measured that would tell what is to be gained.")
    if answer.next:
        yield element("h3", "What to type next")
        yield element("ol", *(_step(one.step, one.words) for one in answer.next), class_="steps")


def coded(text: str) -> Markup:
    """A sentence in which commands stand between backticks."""
    parts = text.split("`")
    return joined(element("code", part) if place % 2 else part for place, part in enumerate(parts))


def _why_not(gain: Gain) -> str:
    if gain.by is By.NONE and gain.kind == "samples":
        return "best without workers"
    return WITHOUT.get(gain.by) or f"{HOW[gain.by]}; how much was not measured"


def _card(gain: Gain) -> Markup:
    how = f"{HOW[gain.by]}{_workers(gain)}{_lacks(gain)}"
    guard = element("p", gain.guard, class_="how") if gain.guard else ""
    return element(
        "li",
        element("p", name_of(gain), class_="who"),
        element("p", f"{times(gain.times or 0.0)}{TIMES}", class_="big"),
        draw(Bars(unit="times as fast", marks=tuple(_marks(gain)), base=1.0), f"The speed of {name_of(gain)}"),
        element("p", coded(how), class_="how"),
        guard,
        class_="card",
    )


def _marks(gain: Gain) -> Iterator[Mark]:
    """All that is recommended, and what less than all reaches."""
    yield Mark(name="all of it", value=gain.times or 0.0, interval=gain.interval, chosen=True)
    for name, reach in ((MIXED, gain.by_mixed), (ALONE, gain.by_apply)):
        if reach and gain.by in (By.MIXED, By.SCRIPT) and not _is_all(gain, reach):
            yield Mark(name=name, value=reach.times, interval=reach.interval)


def _is_all(gain: Gain, reach: Reach) -> bool:
    return reach.times == gain.times and not reach.without


def _workers(gain: Gain) -> str:
    return f", with {gain.workers} workers" if gain.workers else ""


def _lacks(gain: Gain) -> str:
    """What goes in with --numerics mixed, and is not in its figure."""
    without = gain.by_mixed.without if gain.by_mixed else ()
    if gain.by is not By.SCRIPT or not without:
        return ""
    return f"; the figure of `{MIXED}` is without {' and '.join(without)}, which go in as well"


def _step(step: Step, words: tuple[str, ...]) -> Markup:
    text = words[0] if step is Step.REPAIR and len(words) == 1 else quoted(*words)
    return element("li", element("p", STEPS[step]), command(text.partition("  # ")[0]))
