"""The report in a browser: links, filters, collapsed parts, requests, and layout."""

from dataclasses import replace

import numpy as np
import pytest

from simulations.reproduction.claim import Paper
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import load
from tests.simulations.fakes import STAMP, claim, figure, run

pytestmark = pytest.mark.slow
PAPERS = Paper("One, Two", "T", "2022"), Paper("Three", "T", "2024")
MANY = {f"n{number}": 10.0**number for number in range(12)}


def claims():
    """Return claims of two papers with the statements of real ones."""
    first, second = PAPERS
    fakes = {
        "lemma-4.3": claim("lemma-4.3", figures=[figure()], extra=MANY),
        "theorem-3.1": claim("theorem-3.1", verdict=Verdict.FINDING, finding="It is 1/8 < q."),
        "huang-scaling": claim("huang-scaling", figures=[figure("other")]),
        "events": claim("events", error=ValueError("no root")),
    }
    papers = {"huang-scaling": second}
    return [
        replace(fake, statement=load(name).statement, paper=papers.get(name, first))
        for name, fake in fakes.items()
    ]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    run(path, claims(), stamp=STAMP | {"mode": "quick"}, quick=True)
    return (path / "report.html").as_uri()


@pytest.fixture
def opened(browser, address):
    """Return a function that opens the page; its log has console messages and requests."""
    contexts = []

    def open_page(**options):
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page, log = context.new_page(), {"console": [], "requests": [], "failed": []}
        page.on("console", lambda message: log["console"].append(message.text))
        page.on("pageerror", lambda error: log["console"].append(str(error)))
        page.on("request", lambda request: log["requests"].append(request.url))
        page.on("requestfailed", lambda request: log["failed"].append(request.url))
        page.goto(address)
        return page, log

    yield open_page
    for context in contexts:
        context.close()


def shown(page):
    return page.evaluate(
        "[...document.querySelectorAll('section.claim')].filter(s => s.offsetParent).map(s => s.id)"
    )


class TestPage:
    def test_no_messages_and_no_requests_except_for_figures(self, opened, address):
        page, log = opened()
        page.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
        page.wait_for_function("[...document.images].every(i => i.complete && i.naturalWidth)")
        assert log["console"] == []
        assert log["failed"] == []
        folder = address.removesuffix("report.html")
        figures = {f"{folder}figures/line.png", f"{folder}figures/other.png"}
        assert set(log["requests"]) == {address, *figures}

    def test_links(self, opened):
        page, _ = opened()
        page.click("table.summary a[href='#huang-scaling']")
        assert page.url.endswith("#huang-scaling")
        top = page.evaluate("document.getElementById('huang-scaling').getBoundingClientRect().top")
        assert -1 <= top < page.viewport_size["height"]
        broken = page.evaluate(
            "[...document.querySelectorAll('a')].filter("
            "a => !document.getElementById(a.hash.slice(1))).length"
        )
        assert broken == 0

    def test_filters(self, opened):
        page, _ = opened()
        everything = ["lemma-4.3", "theorem-3.1", "huang-scaling", "events"]
        assert shown(page) == everything
        page.check("#verdict-holds")
        assert shown(page) == ["lemma-4.3", "huang-scaling"]
        rows = page.locator("table.summary tr[data-verdict]:visible")
        assert rows.count() == 2
        page.check("#paper-2")
        assert shown(page) == ["huang-scaling"]
        page.check("#verdict-all")
        page.check("#paper-all")
        assert shown(page) == everything

    def test_filters_by_keyboard(self, opened):
        page, _ = opened()
        page.focus("#verdict-all")
        page.keyboard.press("ArrowDown")
        assert shown(page) == ["lemma-4.3", "huang-scaling"]

    def test_collapsed_numbers(self, opened):
        """Key and click expand and collapse a table."""
        page, _ = opened()
        numbers = page.locator("#lemma-4\\.3 details", has_text="Measured numbers")
        cell = numbers.locator("td").last
        assert not cell.is_visible()
        numbers.locator("summary").focus()
        page.keyboard.press("Enter")
        assert cell.is_visible()
        numbers.locator("summary").click()
        assert not cell.is_visible()

    def test_a_claim_fits_on_two_screens_of_a_phone(self, opened):
        page, _ = opened(viewport={"width": 390, "height": 844})
        heights = page.evaluate(
            "[...document.querySelectorAll('section.claim')].map(s => s.offsetHeight)"
        )
        assert max(heights) < 2 * 844
        assert page.evaluate("document.querySelector('.summary td').offsetWidth") > 300
        assert page.evaluate("document.documentElement.scrollWidth") <= 390

    def test_formulas_are_drawn(self, opened):
        page, _ = opened()
        sizes = page.evaluate(
            "[...document.querySelectorAll('blockquote math')].map(m => {"
            "const r = m.getBoundingClientRect(); return [r.width, r.height]})"
        )
        assert len(sizes) > 10
        assert all(width > 3 and 5 < height < 60 for width, height in sizes)


#: Boxes of all visible words and formulas, clipped by their ancestors.
BOXES = """() => {
  const boxes = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility() || parent.closest("math, .skip")) continue;
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) boxes.push([r, node.data.trim().slice(0, 30), parent]);
  }
  for (const m of document.querySelectorAll("math"))
    if (m.checkVisibility()) boxes.push([m.getBoundingClientRect(), m.textContent, m]);
  return boxes.map(([r, text, element]) => {
    let [left, right, top, bottom] = [r.left, r.right, r.top, r.bottom];
    for (let e = element; e; e = e.parentElement)
      if (getComputedStyle(e).overflowX !== "visible") {
        const b = e.getBoundingClientRect();
        left = Math.max(left, b.left); right = Math.min(right, b.right);
      }
    return {left, right, top, bottom, text};
  }).filter(b => b.right - b.left > 1 && b.bottom - b.top > 1);
}"""


def overlaps(boxes):
    """Return pairs of texts whose boxes overlap by more than the leading of a line."""
    pairs = []
    boxes = sorted(boxes, key=lambda box: box["top"])
    for number, box in enumerate(boxes):
        for other in boxes[number + 1 :]:
            if other["top"] >= box["bottom"]:
                break
            width = min(box["right"], other["right"]) - max(box["left"], other["left"])
            height = min(box["bottom"], other["bottom"]) - max(box["top"], other["top"])
            if width > 2 and height > 8:
                pairs.append((box["text"], other["text"]))
    return pairs


class TestLayout:
    @pytest.mark.parametrize("width", [1200, 360])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_no_text_overlaps_another(self, opened, width, scheme, tmp_path):
        page, _ = opened(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        boxes = page.evaluate(BOXES)
        assert len(boxes) > 200
        assert overlaps(boxes) == []
        assert max(box["right"] for box in boxes) <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=tmp_path / "page.png", full_page=True)
        least, paper, most = brightness(tmp_path / "page.png")
        assert paper > 0.95 if scheme == "light" else paper < 0.15
        assert most - least > 0.8  # the page is not empty

    def test_overlapping_text_is_detected(self, opened):
        page, _ = opened()
        page.add_style_tag(content="table.summary tr { display: block; height: 8px; }")
        assert overlaps(page.evaluate(BOXES))

    def test_print_shows_everything(self, opened):
        page, _ = opened()
        page.emulate_media(media="print")
        assert not page.locator(".filters").is_visible()
        assert len(page.pdf()) > 10_000


def brightness(path):
    """Return the least, the median and the greatest brightness of an image, in [0, 1]."""
    from matplotlib.image import imread

    grey = imread(path)[..., :3].mean(axis=-1)
    return np.quantile(grey, (0.0, 0.5, 1.0)).tolist()
