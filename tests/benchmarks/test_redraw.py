"""One redraw of the explorer at the default size, in a real browser.

The time is from the new value of the slider to the second frame after the end of the run. It
includes the run in a worker process, its observables, events and flow field, and the update of the
plots.
"""

import pytest

from simulations.explorer.state import View
from tests.browser import browser as browser

pytest.importorskip("bokeh", reason="the extra explore is not installed")
from tests.simulations.explorer.conftest import serving

#: Seconds that a redraw may take.
GOAL = 0.5
#: A parameter of each theory, and its values in turn; consecutive runs differ.
MOVES = {
    "positional": ("nu", "0.02 0.03 0.05 0.008 0.012 0.07 0.015 0.025"),
    "masked": ("P", "1e5 1e7 1e8 1e9 1e4 3e7 3e8 3e5"),
    "shallow": ("L", "40 20 80 60 100 40 20 80"),
}
REDRAW = """([name, value]) => new Promise((done, fail) => {
  const page = Bokeh.documents[0], status = page.get_model_by_name("status");
  let computing = false;
  const onStatus = () => {
    if (status.text.includes("computing")) computing = true;
    else if (computing && status.text.includes("Computed in")) {
      status.properties.text.change.disconnect(onStatus);
      requestAnimationFrame(() => requestAnimationFrame(done));
    }
  };
  status.properties.text.change.connect(onStatus);
  page.get_model_by_name(name).value = value;
  setTimeout(() => fail(new Error(`${name} = ${value}: ${status.text}`)), 30000);
})"""


@pytest.mark.benchmark(group="one redraw of the explorer")
@pytest.mark.parametrize("theory", list(MOVES))
def test_redraw(benchmark, browser, theory):
    if not benchmark.enabled:
        pytest.skip("timed by `make bench`; the plots are tested with the explorer")
    name, values = MOVES[theory]
    with serving(View(theory)) as served:
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        page.goto(f"http://localhost:{served.port}/")
        page.get_by_text("Computed in").wait_for(timeout=60_000)
        moves = iter(values.split())
        benchmark.pedantic(
            lambda value: page.evaluate(REDRAW, [name, value]),
            setup=lambda: (page.wait_for_timeout(500), ((next(moves),), {}))[1],
            rounds=len(values.split()),
        )
        page.close()
    assert benchmark.stats["median"] < GOAL
