import base64
import io
import re
from html.parser import HTMLParser

import pytest

from simulations.display import PlainDisplay
from simulations.files.store import StoreError
from simulations.reproduction.claim import Verdict
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.report import MEANING, rerun, show, write_report
from simulations.reproduction.run import reproduce
from tests.simulations.fakes import claim, figure

STAMP = {"patchdyn": "0.1.0", "commit": "", "numpy": "2.0", "mode": "quick"}
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Checks that tags nest, and collects what a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.attributes.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        elif "src" in found or "href" in found:
            self.loaded.append(found.get("src") or found["href"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture
def folder(tmp_path):
    claims = [
        claim("one", figures=[figure()], warning="estimated & so on"),
        claim("two", verdict=Verdict.FAILS, measured={"found": "never", "large": 10**12}),
        claim("bad", error=ValueError("<no root>")),
        claim("slow", error=KeyboardInterrupt()),
        claim("last", verdict=Verdict.FINDING),
    ]
    folder = ReportFolder(tmp_path, STAMP, [c.id for c in claims])
    reproduce(claims, folder, PlainDisplay(io.StringIO()), quick=True)
    return folder


@pytest.fixture
def text(folder):
    return (folder.path / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def page(text):
    return Page(text)


class TestPage:
    def test_nothing_is_loaded_from_elsewhere(self, page, text):
        assert page.loaded
        assert all(source.startswith("data:image/png;base64,") for source in page.loaded)
        assert not re.search(r"https?:|//|url\(|@import|<script", re.sub('base64,[^"]*', "", text))

    def test_figures_are_inline(self, page, folder):
        picture = page.loaded[0].removeprefix("data:image/png;base64,")
        assert base64.b64decode(picture) == (folder.path / "figures" / "line.png").read_bytes()
        alt = next(found["alt"] for tag, found in page.attributes if tag == "img")
        assert alt == "A <line>"

    def test_readable_on_a_phone(self, page, text):
        assert any(found.get("name") == "viewport" for _, found in page.attributes)
        assert "max-width: 100%" in text
        assert "prefers-color-scheme: dark" in text

    def test_summary_comes_first_and_links_to_every_claim(self, page):
        assert page.links == ["#one", "#two", "#bad", "#slow", "#last"]
        assert page.ids == ["one", "two", "bad", "slow", "last", "provenance"]

    def test_badges_say_the_verdict_in_words(self, text):
        badges = re.findall(r'class="badge \w+" title="[^"]+">(\w+)<', text)
        assert badges[:5] == ["holds", "fails", "error", "missing", "missing"]
        assert badges[:5] == badges[5:]

    def test_each_claim_tells_everything(self, page):
        for words in (
            "The statement of one: a < b & c.",
            "What one measures.",
            "The worst difference is 1e-12 < 1e-11.",
            "1e-12",
            "tolerance",
            "D = 16, q = 0.125",
            "D = 16, qD = 2",
            "1e+12",
            "Warning: estimated & so on",
            "patchdyn reproduce --quick --only one --out report-one",
            "figures/line.png, data/line.nc",
            "Could not be run: ValueError: <no root>",
            "Not run yet: slow, last. The same command resumes.",
            "Quick run",
            "none: not run from a checkout",
        ):
            assert words in page.words, words

    def test_page_of_a_full_run_has_no_notes(self, tmp_path):
        folder = ReportFolder(tmp_path / "full", STAMP | {"mode": "full"}, ["one"])
        reproduce([claim("one")], folder, PlainDisplay(io.StringIO()))
        words = Page((folder.path / "report.html").read_text()).words
        assert "Quick run" not in words
        assert "Not run yet" not in words
        assert "patchdyn reproduce --only one --out report-one" in words

    def test_claim_that_nobody_knows_any_more(self, folder):
        folder.claims.append("gone")
        write_report(folder, {})
        assert "gone" in Page((folder.path / "report.html").read_text()).ids

    def test_picture_that_cannot_be_read(self, folder, monkeypatch):
        records = folder.records()
        records["one"]["figures"][0]["name"] = "absent"
        monkeypatch.setattr(folder, "records", lambda: records)
        with pytest.raises(StoreError, match=r"cannot read .*absent\.png"):
            write_report(folder, {})


def test_every_verdict_has_a_meaning():
    assert {verdict.value for verdict in Verdict} < set(MEANING)


def test_command_that_reruns():
    assert rerun({"claim": "x", "quick": False}) == "patchdyn reproduce --only x --out report-x"
    assert rerun({"claim": "x", "thorough": True}).startswith("patchdyn reproduce --thorough ")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (True, "yes"),
        (1 / 3, "0.333333"),
        (7, "7"),
        ({"a": [1, 2.0], "b": None}, "a = 1, 2"),
        ([{"D": 8}, {"D": 9}], "D = 8; D = 9"),
    ],
)
def test_numbers_as_a_person_writes_them(value, words):
    assert show(value) == words
