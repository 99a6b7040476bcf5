"""A real browser, for tests of pages."""

import shutil
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; of a module, since its driver keeps an event loop running."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        own = driver.chromium.executable_path
        executables = [
            *filter(None, map(shutil.which, BROWSERS)),
            *([own] if Path(own).exists() else []),
        ]
        if not executables:
            pytest.skip("no Chromium on this machine")
        started = driver.chromium.launch(executable_path=executables[0])
        yield started
        started.close()
