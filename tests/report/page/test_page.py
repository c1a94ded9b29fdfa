"""A page, taken apart: what it holds, what it asks for, and what a hostile profile does to it."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hostile_profiles import ESCAPES, READ
from making import choices, profile
from report.page.profiles import HOSTILE, PROFILES, Parsed, hostile, page_of
from report.test_answer import OPEN, PROBABLE

from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.profile import dump_json, load, parse
from gputune.report import page
from gputune.report.answer import Step
from gputune.report.answer_parts import AFTER
from gputune.resources.printable import printable


@pytest.fixture(scope="module", params=PROFILES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def text(name):
    return page_of(name)


@pytest.fixture(scope="module")
def parsed(text):
    return Parsed(text)


def policy(parsed):
    return next(one.attributes["content"] for one in parsed.all("meta") if "http-equiv" in one.attributes)


def test_it_is_whole_html(parsed):
    assert parsed.faults == []
    assert parsed.nodes[0].tag == "html"
    assert parsed.nodes[0].attributes["lang"] == "en"
    assert len(parsed.all("title")[0].text) > len(": gputune")


def test_ids_are_unique_and_every_link_in_the_page_leads_somewhere(parsed):
    ids = [one.attributes["id"] for one in parsed.nodes if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    links = [one.attributes["href"] for one in parsed.all("a")]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert all(one.attributes["aria-labelledby"] in ids for one in parsed.all("section"))


def test_headings_come_in_order(parsed):
    levels = [int(one.tag[1]) for one in parsed.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_there_is_one_of_each_landmark(parsed):
    counts = [len(parsed.all(tag)) for tag in ("main", "header", "nav", "footer")]
    assert counts == [1, 1, 1, 1]
    assert not [one for one in parsed.all("section") if "main" not in one.within]


def test_every_picture_has_a_name_and_every_chart_has_its_numbers_in_a_table(parsed):
    images = [one for one in parsed.nodes if one.attributes.get("role") == "img"]
    assert all(len(one.attributes["aria-label"]) > 3 for one in images)
    assert all("aria-hidden" in one.attributes or one in images for one in parsed.all("svg"))
    figures = len(parsed.all("figure"))
    assert figures == len(parsed.all("figcaption"))
    assert figures == len([one for one in parsed.all("table") if "figure" in one.within])


def test_a_table_that_scrolls_is_reached_by_the_keyboard(text):
    assert text.count('tabindex="0"') == text.count('class="scroll"')


def test_every_control_has_a_name(parsed):
    buttons = parsed.all("button")
    assert all(one.text.strip() for one in buttons)
    assert [one.attributes["for"] for one in parsed.all("label")] == [
        one.attributes["id"] for one in parsed.all("input")
    ]


def test_what_needs_the_script_is_hidden_without_it(parsed):
    controls = [one for one in parsed.all("button") if "scripted" in one.attributes.get("class", "")]
    assert controls == parsed.all("button")
    assert all("hidden" in one.attributes for one in controls)
    assert all("open" in one.attributes for one in parsed.all("details"))


def test_nothing_is_asked_for_from_anywhere(text, parsed):
    addresses = [
        value
        for one in parsed.nodes
        for key, value in one.attributes.items()
        if key in ("href", "src", "action", "srcset", "xlink:href", "data", "poster", "formaction", "background")
    ]
    assert all(value.startswith("#") or value == "data:," for value in addresses)
    assert not parsed.all("img", "iframe", "object", "embed", "form", "base", "use", "image", "foreignobject")
    style = parsed.all("style")[0].text
    assert not re.search(r"url\(|@import|//", style)


def test_nothing_runs_but_the_page_s_own_script(parsed):
    scripts = parsed.all("script")
    assert [one.attributes.get("type") for one in scripts] == ["application/json", None]
    assert not [key for one in parsed.nodes for key in one.attributes if key.startswith("on") or key == "style"]
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        own = base64.b64encode(hashlib.sha256(parsed.all(tag)[-1].text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{own}';" in policy(parsed)
    assert policy(parsed).startswith("default-src 'none';")
    assert "unsafe" not in policy(parsed)


def test_the_profile_is_in_it_as_gputune_reads_it(name, parsed):
    made = PROFILES[name]()
    embedded = next(one.text for one in parsed.all("script") if "type" in one.attributes)
    assert json.loads(embedded) == json.loads(dump_json(made))
    assert not set("<>&") & set(embedded)
    assert dump_json(parse(embedded.encode())) == dump_json(made)


def test_its_size(name, text):
    assert len(text.encode()) < {"h200": 700_000}.get(name, 120_000)


@pytest.mark.parametrize("planted", [HOSTILE, ESCAPES, "\x00\x7f\ud800 \u2028", "'\"><img src=x onerror=alert(1)>"])
def test_what_a_profile_holds_is_text_and_nothing_else(planted):
    """The elements are those of the same profile with harmless names, and the texts are shown as they are."""
    text = page.text(hostile(planted), "a.yaml")
    plain = Parsed(page.text(hostile("harmless" * 2), "a.yaml"))
    parsed = Parsed(text)
    assert parsed.faults == []
    # A command has an element for each of its words.
    assert [one.tag for one in parsed.nodes if "code" not in one.within] == [
        one.tag for one in plain.nodes if "code" not in one.within
    ]
    assert [set(one.attributes) for one in parsed.all("g", "td", "li", "div", "button")] == [
        set(one.attributes) for one in plain.all("g", "td", "li", "div", "button")
    ]
    shown = printable(planted.encode(errors="backslashreplace").decode())
    assert sum(shown in one.text for one in parsed.nodes) > 10
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("which", READ)
def test_whatever_can_be_read_can_be_shown(which, tmp_path):
    content = READ[which]
    path = tmp_path / ("profile.json" if "JSON" in which else "profile.yaml")
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    parsed = Parsed(page.text(load(path), str(path)))
    assert parsed.faults == []
    assert len(parsed.all("section")) == len(page.SECTIONS)


def test_every_step_has_its_words():
    assert set(AFTER) == set(Step)


def test_what_is_wrong_comes_first_and_is_said_once_for_all_gpus():
    found = [
        Finding(
            check="clock_lock",
            severity="WARNING",
            message="slow",
            remedy=f"sudo nvidia-smi -i {gpu} -rgc",
            subject=f"GPU {gpu}",
        )
        for gpu in range(4)
    ]
    text = page.text(profile(findings=tuple(found)), "profile.yaml")
    assert "<code><span>sudo</span> <span>nvidia-smi</span> <span>-i</span> <span>0,1,2,3</span>" in text
    assert text.count("GPU 0-3: slow") == 2, "in the answer, and among the findings"
    assert text.index("What is wrong") < text.index("GPU 0-3: slow") < text.index("What to type next")


def test_who_and_where_is_not_told():
    gap = Gap(fact="x", reason="cannot read https://ann:s3cret@example.org/x and /home/ann/x")
    text = page.text(profile(gaps=(gap,)), "profile.yaml")
    assert "s3cret" not in text
    assert "/home/ann" not in text
    assert "cannot read https://example.org/x and /home/USER/x" in text


def test_a_gain_has_its_interval():
    one = replace(choices({"compile": True})["compile"], gain=1.5, interval=(1.4, 1.6))
    text = page.text(replace(profile({}), settings={"compile": one}), "a.yaml")
    assert "1.50" in text
    assert "1.40\u20131.60" in text


def test_a_profile_without_anything_says_so():
    text = page.text(profile({}), "profile.yaml")
    assert "Nothing was measured that would tell what is to be gained." in text
    assert "Nothing was measured that a chart would show." in text
    assert "This profile has no findings." in text


def test_what_was_not_measured_is_told():
    made = choices({"compile": False, "amp_dtype": None})
    settings = {
        "compile": replace(made["compile"], unmeasured=True),
        "amp_dtype": replace(made["amp_dtype"], provisional=True, evidence=("training_step",)),
    }
    shown = page.text(replace(profile({}), settings=settings), "profile.yaml")
    assert "compile: torch&#x27;s default stands until they are." in shown
    assert "amp_dtype: torch&#x27;s default stands until it is repeated." in shown
    assert "not measured</span>" in shown
    assert "provisional</span>" in shown


@pytest.mark.parametrize("name", ["h200", "tuned"])
def test_a_star_is_drawn_and_not_the_terminals(name):
    parsed = Parsed(page_of(name))
    captions = [one.text for one in parsed.all("figcaption")]
    cells = [one.text for one in parsed.all("td")]
    assert not any("*" in one for one in (*captions, *cells))
    assert any("(★ " in one for one in captions)
    assert "★" in cells


def test_a_tuned_programs_chosen_combination_has_a_star_in_its_picture():
    parsed = Parsed(page_of("tuned"))
    assert "train.py: its own steps (★ chosen)" in [one.text for one in parsed.all("figcaption")]
    stars = [one.text for one in parsed.all("text") if one.text.startswith("★ ")]
    assert len(stars) == 2, "on its card and in its chart"


def test_what_a_tune_was_not_certain_of_is_no_more_certain_here():
    text = page.text(profile({}, programs=(OPEN, PROBABLE)), "profile.yaml")
    assert "open.py: nothing is certain: fused_optimizer seemed 1.15 times as fast" in text
    assert "probably 1.90" in text
    assert "nothing to gain" not in text
