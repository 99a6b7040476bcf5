"""A real browser, for the tests of pages."""

from tests.browser import browser as browser
