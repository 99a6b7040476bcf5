"""The explorer in a real browser: sliders, addresses, cancelling, cells of a sweep, console."""

import re

import pytest

from simulations import maps
from simulations.explorer.state import View
from tests.simulations.test_report_in_browser import brightness

pytest.importorskip("bokeh", reason="the extra explore is not installed")
from tests.simulations.explorer.conftest import serving

pytestmark = pytest.mark.slow
#: Console messages of Bokeh itself.
BOKEH_MESSAGES = re.compile(r"\[bokeh|Bokeh items were rendered|Deprecation warning: allowHTML")
PATIENCE = 60_000  # milliseconds
SET = "([name, value]) => { Bokeh.documents[0].get_model_by_name(name).value = value; }"


@pytest.fixture(scope="module")
def explorer(sweep_folder):
    """A server with the map of a sweep and a small initial problem."""
    with serving(
        View("positional", {"D": "16", "horizon": "1e3"}), maps.read(sweep_folder)
    ) as server:
        yield server


@pytest.fixture(scope="module")
def opening(browser):
    """Return a function that opens a page and records its console messages and requests."""
    context = browser.new_context(
        permissions=["clipboard-read", "clipboard-write"], viewport={"width": 1300, "height": 900}
    )

    def open_page(served, query=""):
        page, log = context.new_page(), {"console": [], "requests": []}
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: log["console"].append(message.text))
        page.on("pageerror", lambda error: log["console"].append(str(error)))
        page.on("request", lambda request: log["requests"].append(request.url))
        page.goto(f"http://localhost:{served.port}/{query}")
        computed(page)
        return page, log

    yield open_page
    context.close()


@pytest.fixture(scope="module")
def opened(opening, explorer):
    """A page that the tests share."""
    return opening(explorer)


def computed(page):
    page.get_by_text("Computed in").wait_for()


def command(page):
    return page.locator("code").inner_text()


def fill(page, name, text):
    field = page.get_by_role("textbox", name=name, exact=True)
    field.fill(text)
    field.press("Enter")


def copied(page, what, begins):
    page.get_by_role("button", name=f"Copy {what}").click()
    read = "navigator.clipboard.readText()"
    page.wait_for_function(f"begins => {read}.then(text => text.startsWith(begins))", arg=begins)
    return page.evaluate(read)


#: All text of the page, including the shadow roots of Bokeh.
TEXTS = """() => {
  const found = [];
  const walk = node => {
    if (node.shadowRoot) walk(node.shadowRoot);
    for (const child of node.childNodes)
      child.nodeType === 3 ? found.push(child.data) : walk(child);
  };
  walk(document.body);
  const figures = Bokeh.documents[0].all_models ?? [];
  for (const model of figures) if (model.type === "Title") found.push(model.text);
  return found.join(" ");
}"""


CURVE = """() => {
  const figure = Bokeh.documents[0].get_model_by_name("curves against time").children[0];
  const source = figure.renderers.find(one => one.name === "γ").data_source;
  return Array.from(source.data["gamma"]);
}"""


class TestPage:
    def test_console_is_empty_and_requests_are_local(self, opened, explorer, tmp_path):
        """The page also shows plots and fits its width."""
        page, log = opened
        assert [text for text in log["console"] if not BOKEH_MESSAGES.match(text)] == []
        here = re.compile(rf"(http|ws)://localhost:{explorer.port}/|data:")
        assert len(log["requests"]) > 3
        assert [url for url in log["requests"] if not here.match(url)] == []
        page.screenshot(path=tmp_path / "page.png", full_page=True)
        least, paper, most = brightness(tmp_path / "page.png")
        assert paper > 0.9
        assert most - least > 0.8
        for title in ("Along the run", "Phase portrait", "Invariants", "Events"):
            assert title in page.evaluate(TEXTS)

    def test_a_slider_changes_plots_and_address(self, opened):
        page, _ = opened
        before = page.evaluate(f"JSON.stringify(({CURVE})())")
        page.evaluate(SET, ["slider of nu", 35])
        page.wait_for_url("**/?system=positional&D=16&nu=0.032&horizon=1e3&*")
        page.wait_for_function(f"before => JSON.stringify(({CURVE})()) !== before", arg=before)
        computed(page)
        assert "--nu 0.032 " in command(page)

    def test_on_a_phone_the_result_comes_first(self, opening, explorer):
        page, _ = opening(explorer)
        page.set_viewport_size({"width": 390, "height": 844})
        top = "name => document.querySelector(name).getBoundingClientRect().top"
        assert page.evaluate(top, ".panels") < 100 < 844 < page.evaluate(top, "aside")
        assert page.locator("code").bounding_box()["width"] > 300
        for tab in ("Invariants", "Equations"):
            page.get_by_text(tab, exact=True).click()
            if tab == "Equations":
                page.locator("math").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.close()

    def test_two_runs_are_compared(self, opening, explorer):
        page, log = opening(explorer)
        page.get_by_role("button", name="Keep to compare").click()
        page.get_by_text("Dotted: patchdyn run --D 16").wait_for()
        page.evaluate(SET, ["slider of nu", 35])
        page.get_by_text("--nu 0.032 ").wait_for()
        computed(page)
        page.reload()
        page.get_by_text("Dotted: patchdyn run --D 16").wait_for()
        page.get_by_text("--nu 0.032 ").wait_for()
        page.get_by_role("button", name="End comparison").click()
        page.get_by_role("button", name="Keep to compare").wait_for()
        assert [text for text in log["console"] if not BOKEH_MESSAGES.match(text)] == []
        page.close()

    def test_a_copied_link_reproduces_the_page(self, opened, opening, explorer):
        page, _ = opened
        fill(page, "qD", "3/2")
        page.wait_for_url("**qD=3%2F2**")
        page.get_by_text("--q 0.09375 ").wait_for()
        computed(page)
        link = copied(page, "link", "http")
        other, _ = opening(explorer, "?" + link.split("?")[1])
        assert command(other) == command(page)
        assert other.evaluate(CURVE) == page.evaluate(CURVE)
        other.close()

    def test_the_command_is_copied(self, opened):
        page, _ = opened
        assert copied(page, "command", "patchdyn run --D 16") == command(page)

    def test_input_is_escaped(self, opened):
        page, log = opened
        fill(page, "β", "<img src=x onerror=console.log(1)>")
        page.get_by_text("not run").wait_for()
        assert page.locator("img[src=x]").count() == 0
        assert "1" not in log["console"]

    def test_a_clicked_cell_shows_its_run(self, opened):
        page, log = opened
        box = page.evaluate(BOX)
        page.mouse.click(box["left"] + box["width"] / 4, box["top"] + box["height"] / 2)
        page.get_by_text("Run below: qD/C^2 = 0.158114, ν = 0.01").wait_for()
        page.wait_for_url("**qD%2FC%5E2=0.158113883008**")
        computed(page)
        assert "--nu 0.01 --beta 0.5 " in command(page)
        assert [text for text in log["console"] if not BOKEH_MESSAGES.match(text)] == []

    def test_a_slow_run_shows_progress_and_is_cancelled(self, opened):
        page, _ = opened
        page.get_by_text("More parameters").click()
        for name, text in {"rtol": "1e-12", "tolerance": "1e-9", "horizon": "1e12"}.items():
            fill(page, name, text)
        page.locator("progress").wait_for()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_text("cancelled").wait_for()
        for name, text in {"rtol": "1e-4", "horizon": "10"}.items():
            fill(page, name, text)
        computed(page)


#: The frame of the map, in pixels of the window.
BOX = """() => {
  const root = Bokeh.documents[0].get_model_by_name("sweep");
  const map = root.children.find(one => one.type === "Figure");
  const find = view => view.model === map ? view :
    (view.child_views ?? []).map(find).find(one => one) ?? null;
  const view = Object.values(Bokeh.index.roots ?? Bokeh.index).map(find).find(one => one);
  const canvas = view.canvas_view.el.getBoundingClientRect(), frame = view.frame.bbox;
  return {left: canvas.left + frame.left, top: canvas.top + frame.top, width: frame.width,
          height: frame.height};
}"""
