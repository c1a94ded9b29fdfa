"""Pages in Debian's Chromium: what they ask for, what the console says, and how they are used without a mouse, on a
phone, in the dark, on paper, and without scripts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report.page.profiles import PROFILES, page_of

from gputune.profile import dump_json, load

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"

CONTRASTS = """() => {
  const [canvas] = [new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true})];
  const linear = (one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (color) => { const [r, g, b] = rgb(color).map((one) => linear(one / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (one) => { for (let at = one; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor; if (rgb(color)[3] === 255) return color; } return 'white'; };
  const found = [];
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.checkVisibility() || ['TITLE', 'SCRIPT', 'STYLE', 'NOSCRIPT'].includes(one.tagName)) continue;
    const style = getComputedStyle(one);
    const [a, b] = [light(one.closest('svg') ? style.fill : style.color), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([one.outerHTML.slice(0, 90), ratio]);
  }
  return found;
}"""
"""The texts that are seen and whose contrast is less than WCAG's AA asks for."""
NAMELESS = """() => [...document.querySelectorAll('[role=img], button, a[href], input, summary, [role=region]')].filter(
  (one) => one.checkVisibility() && !(one.ariaLabel || one.textContent.trim() || one.labels?.length)
  ).map((one) => one.outerHTML)"""
WIDE = "() => document.documentElement.scrollWidth"
SEEN = """(query) => [...document.querySelectorAll(query)].filter(
  (one) => one.checkVisibility() && one.getBoundingClientRect().height > 0).length"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll('svg text')].map(
  (one) => one.getBoundingClientRect().height))"""
CLIPPED = """() => [...document.querySelectorAll('.panel')].filter(
  (one) => one.scrollWidth > one.clientWidth + 1).length"""
ALL = "(query) => document.querySelectorAll(query).length"
STOPS = """() => [...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')].filter(
  (one) => one.checkVisibility()).length"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in PROFILES}
    for name, path in paths.items():
        path.write_text(page_of(name), encoding="utf-8")
    return paths


class Opened:
    """A page in a tab of its own, with what it asked for and what its console said."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.tab = self.context.new_page()
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.tab.on("request", lambda one: self.requests.append(one.url))
        self.tab.on("console", lambda one: self.faults.append(one.text))
        self.tab.on("pageerror", lambda one: self.faults.append(str(one)))
        self.tab.on("dialog", lambda one: (self.faults.append(f"dialog: {one.message}"), one.dismiss()))
        self.tab.goto(path.as_uri())

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.fixture(params=PROFILES)
def path(request: pytest.FixtureRequest, files: dict[str, Path]) -> Path:
    return files[request.param]


def test_it_asks_for_nothing_but_itself_and_the_console_is_quiet(chromium: Any, path: Path) -> None:
    with Opened(chromium, path) as opened:
        opened.tab.get_by_role("button", name="Unfold all").click()
        opened.tab.get_by_role("button", name="Dark theme").click()
        opened.tab.mouse.wheel(0, 100_000)
        opened.tab.wait_for_timeout(200)
        assert [one for one in opened.requests if not one.startswith("data:")] == [path.as_uri()]
        assert [one for one in opened.requests if one.startswith("data:")] in ([], ["data:,"])
        assert opened.faults == []


def test_its_policy_lets_nothing_else_run_or_leave(chromium: Any, files: dict[str, Path]) -> None:
    with Opened(chromium, files["cpu"]) as opened:
        opened.tab.evaluate("""() => {
          const script = document.createElement('script'); script.textContent = 'window.ran = true';
          const image = new Image(); image.src = 'http://127.0.0.1:9/x.png';
          document.body.append(script, image);
        }""")
        opened.tab.wait_for_timeout(200)
        assert opened.tab.evaluate("window.ran") is None
        assert len(opened.faults) == 2
        assert all("Content Security Policy" in one for one in opened.faults)


def test_everything_has_a_name_for_a_screen_reader(chromium: Any, path: Path) -> None:
    with Opened(chromium, path) as opened:
        assert opened.tab.evaluate(NAMELESS) == []
        snapshot = opened.tab.locator("body").aria_snapshot()
        for landmark in ("banner", "navigation", "main", "contentinfo"):
            assert f"- {landmark}" in snapshot
        for line in snapshot.splitlines():
            if line.strip().startswith(("- img", "- button", "- link", "- region", "- figure")):
                assert '"' in line or ": " in line or line.rstrip().endswith(":"), line
        assert opened.tab.get_by_role("img").count() == len(opened.tab.query_selector_all("[role=img]"))


def test_every_control_is_reached_by_keyboard_in_its_order(chromium: Any, path: Path) -> None:
    with Opened(chromium, path) as opened:
        places = []
        for _ in range(opened.tab.evaluate(STOPS)):
            opened.tab.keyboard.press("Tab")
            places.append(
                opened.tab.evaluate("() => [...document.querySelectorAll('*')].indexOf(document.activeElement)")
            )
        assert len(set(places)) == len(places)
        assert places == sorted(places)
        assert opened.tab.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") != "none", (
            "focus is seen"
        )


def test_the_keyboard_works_buttons_folds_and_pictures(chromium: Any, files: dict[str, Path]) -> None:
    with Opened(chromium, files["h200"]) as opened:
        tab = opened.tab
        tab.locator("#theme").press("Enter")
        assert tab.locator("html").get_attribute("data-theme") == "dark"
        tab.locator("#theme").press("Space")
        assert tab.locator("html").get_attribute("data-theme") == "light"
        first = tab.locator("details").first
        first.locator("summary").press("Enter")
        assert first.get_attribute("open") is not None
        picture = tab.locator("#charts .picture").first
        picture.press("ArrowRight")
        assert tab.locator("#tip").inner_text() == "tf32: 3.63 (3.61 to 3.64), 0.870 ms times as fast"
        picture.press("ArrowRight")
        assert tab.locator("#said").inner_text().startswith("bfloat16: 3.31")
        picture.press("Escape")
        assert not tab.locator("#tip").is_visible()
        assert opened.faults == []


def test_a_command_is_copied_and_the_profile_is_saved(chromium: Any, files: dict[str, Path], tmp_path: Path) -> None:
    with Opened(chromium, files["hostile"], permissions=["clipboard-read", "clipboard-write"]) as opened:
        tab = opened.tab
        tab.get_by_role("button", name="Unfold all").click()
        for number in range(tab.locator(".command").count()):
            one = tab.locator(".command").nth(number)
            one.locator("button").click()
            one.locator("button", has_text="Copied").wait_for()
            assert tab.evaluate("navigator.clipboard.readText()") == one.locator("code").text_content()
        with tab.expect_download() as saving:
            tab.get_by_role("button", name="Save hostile.json").click()
        saving.value.save_as(tmp_path / "profile.json")
        assert dump_json(load(tmp_path / "profile.json")) == dump_json(PROFILES["hostile"]())
        assert opened.faults == []


def test_settings_are_sorted_and_filtered(chromium: Any, files: dict[str, Path]) -> None:
    with Opened(chromium, files["h200"]) as opened:
        table = opened.tab.locator(".settings").first
        table.get_by_role("button", name="gain").press("Enter")
        gains = [
            float(one) for one in table.locator("tbody tr").evaluate_all("rows => rows.map((r) => r.dataset.gain)")
        ]
        assert gains == sorted(gains, reverse=True)
        assert table.locator("th.c-gain").get_attribute("aria-sort") == "descending"
        table.get_by_role("button", name="setting").press("Space")
        names = table.locator("tbody td.c-setting").all_inner_texts()
        assert names == sorted(names)
        opened.tab.get_by_label("Filter the settings").fill("fused")
        shown = [one for one in opened.tab.locator(".settings tbody tr").all() if one.is_visible()]
        assert shown
        assert all("fused" in one.inner_text() for one in shown)


@pytest.mark.parametrize("unfolded", [False, True])
def test_a_phone_shows_it_without_moving_sideways(chromium: Any, path: Path, unfolded: bool) -> None:
    with Opened(chromium, path, viewport={"width": 360, "height": 740}) as opened:
        if unfolded:
            opened.tab.get_by_role("button", name="Unfold all").click()
        assert opened.tab.evaluate(WIDE) <= 360
        assert opened.tab.evaluate(SMALLEST) > 9


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_in_both_themes(chromium: Any, path: Path, scheme: str) -> None:
    with Opened(chromium, path, color_scheme=scheme) as opened:
        opened.tab.get_by_role("button", name="Unfold all").click()
        assert opened.tab.evaluate(CONTRASTS) == []
        opened.tab.locator("#theme").click()
        assert opened.tab.evaluate(CONTRASTS) == []


def test_the_dark_is_dark_by_preference_and_by_the_button(chromium: Any, files: dict[str, Path]) -> None:
    back = "() => getComputedStyle(document.body).backgroundColor"
    with Opened(chromium, files["cpu"], color_scheme="dark") as dark, Opened(chromium, files["cpu"]) as light:
        before = light.tab.evaluate(back)
        assert dark.tab.evaluate(back) != before
        light.tab.locator("#theme").click()
        assert light.tab.evaluate(back) == dark.tab.evaluate(back)
        dark.tab.locator("#theme").click()
        assert dark.tab.evaluate(back) == before


def test_paper_has_everything_and_no_buttons(chromium: Any, path: Path, tmp_path: Path) -> None:
    # An A4 page between its margins.
    with Opened(chromium, path, viewport={"width": 718, "height": 1000}, color_scheme="dark") as opened:
        assert opened.tab.evaluate(SEEN, "details td, details li") == 0, "folded on a screen"
        opened.tab.emulate_media(media="print", color_scheme="dark")
        every = opened.tab.evaluate(ALL, "details td, details li")
        empty = opened.tab.evaluate("() => document.querySelectorAll('details td:empty').length")
        assert every > empty
        assert opened.tab.evaluate(SEEN, "details td, details li") == every
        assert opened.tab.evaluate(SEEN, "button, nav, input") == 0
        assert opened.tab.evaluate(WIDE) <= 718
        assert opened.tab.evaluate("() => getComputedStyle(document.body).color") == "rgb(27, 29, 33)", "ink, not light"
        assert opened.tab.evaluate(CLIPPED) == 0
        opened.tab.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000


def test_without_scripts_everything_is_shown(chromium: Any, path: Path) -> None:
    with Opened(chromium, path, java_script_enabled=False) as opened:
        assert all(one.is_visible() for one in opened.tab.locator("figure, details li, .settings tr").all())
        assert not any(one.is_visible() for one in opened.tab.locator("button, input").all())
        assert opened.tab.get_by_text("With scripts on, a button here saves it.").is_visible()
        assert opened.faults == []


def test_nothing_of_a_hostile_profile_ran(chromium: Any, files: dict[str, Path]) -> None:
    with Opened(chromium, files["hostile"]) as opened:
        assert opened.faults == []
        assert opened.tab.evaluate("document.scripts.length") == 2
        data = json.loads(opened.tab.evaluate("document.getElementById('data').textContent"))
        assert "</script>" in data["fingerprint"]["gpu"]
        assert "</script>" in opened.tab.locator("h1").inner_text()
