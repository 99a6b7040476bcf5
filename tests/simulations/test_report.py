"""The page of a report, and the text of its sentences and numbers."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from simulations.files import StoreError
from simulations.positional.validated.page import EXTRA_FILES
from simulations.reproduction.claim import Context, Measurement
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids, load
from simulations.reproduction.report import MEANING, rerun, show, write_report
from simulations.reproduction.run import measure
from simulations.reproduction.typeset import points, typeset
from symbolic.core.prose import pieces
from tests.simulations.fakes import claim, figure, run

STAMP = {"patchdyn": "0.1.0", "commit": "", "numpy": "2.0", "mode": "quick"}
VOID = {"meta", "img", "br", "input", "wbr"}


class Page(HTMLParser):
    """Parser that checks that tags nest, and collects ids, links, loaded files and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.attributes.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        elif "src" in attributes or "href" in attributes:
            self.loaded.append(attributes.get("src") or attributes["href"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def folder(tmp_path):
    claims = [
        claim("one", figures=[figure()], warning="estimated & so on"),
        claim("two", verdict=Verdict.FAILS, extra={"solution": "never", "large": 10**12}),
        claim("bad", error=ValueError("<no root>")),
        claim("slow", error=KeyboardInterrupt()),
        claim("last", verdict=Verdict.FINDING),
    ]
    run(tmp_path, claims, stamp=STAMP, quick=True)
    with ReportFolder(tmp_path, STAMP, ()) as folder:
        yield folder


@pytest.fixture
def text(folder):
    return (folder.path / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def page(text):
    return Page(text)


class TestPage:
    def test_nothing_is_loaded_from_elsewhere(self, page, text):
        assert set(page.loaded) == {"figures/line.png"}
        assert not re.search(r"https?:|//|url\(|@import|<script", text)

    def test_single_file_contains_its_figures(self, folder):
        write_report(folder, {}, single_file=True)
        text = (folder.path / "report.html").read_text(encoding="utf-8")
        loaded = Page(text).loaded
        assert len(loaded) == 1
        picture = loaded[0].removeprefix("data:image/png;base64,")
        assert base64.b64decode(picture) == (folder.path / "figures" / "line.png").read_bytes()
        assert not re.search(r"https?:|//|url\(|@import|<script", re.sub('base64,[^"]*', "", text))

    def test_figures_have_alternative_texts(self, page):
        alts = [attributes["alt"] for tag, attributes in page.attributes if tag == "img"]
        assert alts == ["A <line>. What & how."]

    def test_headings_are_in_order(self, page):
        levels = [int(tag[1]) for tag, _ in page.attributes if re.fullmatch(r"h\d", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))

    def test_readable_on_a_phone(self, page, text):
        assert any(attributes.get("name") == "viewport" for _, attributes in page.attributes)
        assert "max-width: 100%" in text
        assert "prefers-color-scheme: dark" in text

    def test_summary_comes_first_and_links_to_every_claim(self, page):
        claims = ["one", "two", "bad", "slow", "last"]
        links = [link for link in page.links if link[1:] in claims]
        assert list(dict.fromkeys(links)) == [f"#{claim}" for claim in claims]
        assert [name for name in page.ids if name in claims] == claims
        assert {link[1:] for link in page.links} <= set(page.ids)
        assert page.ids.index("summary") < page.ids.index("one") < page.ids.index("provenance")

    def test_filters_offer_every_verdict(self, page):
        shown = {attributes.get("data-verdict") for _, attributes in page.attributes} - {None}
        assert shown == {"holds", "fails", "error", "missing"}
        choices = {name for name in page.ids if name.startswith("verdict-")}
        assert choices == {f"verdict-{verdict}" for verdict in (*shown, "all")}

    def test_badges_contain_the_verdict_as_text(self, text):
        badges = re.findall(r'class="badge \w+" title="[^"]+">(\w+)<', text)
        assert badges[:4] == ["holds", "fails", "error", "missing"]  # the counts
        assert badges[4:9] == ["holds", "fails", "error", "missing", "missing"]
        assert badges[4:9] == badges[9:]

    def test_each_claim_has_all_its_texts(self, page):
        for text in (
            "The statement of one: a<b & c.",
            "What one measures.",
            "The worst of 3 is 10−12.",
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
            assert text in page.text, text

    def test_page_of_a_full_run_has_no_notes(self, tmp_path):
        run(tmp_path / "full", [claim("one")], stamp=STAMP | {"mode": "full"})
        text = Page((tmp_path / "full" / "report.html").read_text()).text
        assert "Quick run" not in text
        assert "Not run yet" not in text
        assert "patchdyn reproduce --only one --out report-one" in text

    def test_claim_that_is_no_longer_registered(self, folder):
        folder.claims.append("gone")
        write_report(folder, {})
        assert "gone" in Page((folder.path / "report.html").read_text()).ids

    def test_image_that_cannot_be_read(self, folder, monkeypatch):
        records = folder.records()
        records["one"]["figures"][0]["name"] = "absent"
        monkeypatch.setattr(folder, "records", lambda: records)
        with pytest.raises(StoreError, match=r"cannot read .*absent\.png"):
            write_report(folder, {}, single_file=True)


class TestFindings:
    def page_of(self, tmp_path, **options):
        run(tmp_path, [claim("one", **options)])
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    def test_finding_is_in_row_and_section(self, tmp_path):
        text = self.page_of(tmp_path, finding="It is {n}.")
        assert text.count('<p class="found">It is 3.</p>') == 1
        assert "<td>It is 3.</td>" in text

    def test_tubes_name_the_commands_that_check_them(self, tmp_path):
        fake = claim("one")

        def measure(context):
            return Measurement({"tubes": fake.measure(context).tables["numbers"]})

        tubes = replace(
            fake, tables={"tubes": fake.tables["numbers"]}, measure=measure, finding="It is so."
        )
        run(tmp_path, [replace(tubes, headline=lambda tables: {}), claim("two")])
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert text.count("<code>patchdyn prove --check proof.json</code>") == 1

    def test_a_change_after_a_run_is_in_row_and_section(self, tmp_path):
        text = self.page_of(tmp_path, finding="It is 3.", amended="Was 2 & is 3.")
        note = "Changed after a run: Was 2 &amp; is 3."
        assert f'<td>It is 3. <span class="soft">{note}</span></td>' in text
        assert "<strong>Changed after a run:</strong> Was 2 &amp; is 3.</p>" in text
        assert "Changed after" not in self.page_of(tmp_path / "other", finding="It is 3.")

    def test_order_of_the_parts_of_a_claim(self, tmp_path):
        text = self.page_of(tmp_path, finding="It is {n}.", figures=[figure()])
        section = text[text.index('id="one"') :]
        parts = (
            "<blockquote>",
            "<figure>",
            '<p class="found">It is 3.</p>',
            "the worst is small",
            "Measured numbers",
        )
        positions = [section.index(part) for part in parts]
        assert positions == sorted(positions)

    def test_a_failing_row_is_marked_with_its_predicate(self, tmp_path):
        text = self.page_of(tmp_path, verdict=Verdict.FAILS)
        assert "0 of 1; not D = 16, qD = 2</td>" in text
        assert re.search(r'<tr class="bad">.*<td>the worst is small</td></tr>', text)
        assert "Not satisfied" not in self.page_of(tmp_path / "other")

    def test_a_missing_number_is_replaced_by_its_text(self, tmp_path):
        assert '<td class="number">never</td>' in self.page_of(tmp_path)

    def test_each_table_is_stored_as_csv(self, tmp_path):
        text = self.page_of(tmp_path)
        assert "data/one-numbers.csv" in text
        stored = (tmp_path / "data" / "one-numbers.csv").read_text()
        assert stored == "D,qD,worst,T1,n,ok\n16,2.0,1e-12,,3,True\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gamma >= rho holds; it is so", ["gamma >= rho holds.", "It is so."]),
        ("max |rho| falls (a; b); rho", ["max |rho| falls (a; b).", "rho."]),
        ("one is 1e-3. Two; three.", ["One is 1e-3.", "Two; three."]),
        ("", []),
    ],
)
def test_points_of_a_text(text, expected):
    assert points(text) == expected


def test_details_are_collapsed(tmp_path):
    record, _ = measure(claim("one"), Context(quick=True), STAMP)
    record["tables"][0]["rows"] *= 30
    record["equations"] = ["x"]
    with ReportFolder(tmp_path, STAMP, ["one"]) as folder:
        folder.save(record)
        write_report(folder, {})
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    summaries = re.findall(r"<details>\s*<summary>(\w+)", text)
    assert summaries == ["Tests", "Measured", "Derived", "Method"]
    assert "<details open" not in text
    assert text.count('<th scope="row">16</th>') == 30


@pytest.mark.parametrize("extra", [True, False])
def test_proofs_have_a_page_that_checks_them(tmp_path, monkeypatch, extra):
    package = tmp_path / "package"
    package.mkdir()
    for name in EXTRA_FILES:
        (package / name).touch()
    installed = package if extra else None
    for module in ("simulations.validated", "simulations.positional.validated.page"):
        monkeypatch.setattr(f"{module}.installed_pyodide", lambda: installed)
    record, _ = measure(claim("one"), Context(quick=True), STAMP)
    record["tables"][0]["name"] = "tubes"
    with ReportFolder(tmp_path / "report", STAMP, ["one"]) as folder:
        folder.save(record)
        write_report(folder, {})
        page = Page((folder.path / "report.html").read_text(encoding="utf-8"))
        link = "check/index.html"
        assert ((folder.path / link).is_file(), link in page.links) == (extra, extra)
        assert ("patchdyn prove --page page" in page.text) != extra
        write_report(folder, {}, single_file=True)
        page = Page((folder.path / "report.html").read_text(encoding="utf-8"))
        assert link not in page.links


def test_report_of_a_theory_in_a_file(tmp_path):
    own = replace(claim("own"), command="patchdyn theory own.py --report report-own")
    record, _ = measure(own, Context(quick=True), STAMP)
    record["equations"] = [r"\frac{d}{dt} a = b"]
    with ReportFolder(tmp_path, STAMP, ["own"]) as folder:
        folder.save(record)
        write_report(folder, {})
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>A theory in a file, measured</h1>" in text
    assert "laims of the papers" not in text
    assert "<code>patchdyn theory own.py --report report-own --quick</code>" in text
    assert "<details open><summary>Derived equations (1)</summary>" in text


class TestTypesetting:
    @pytest.mark.parametrize("name", claim_ids())
    def test_every_statement_becomes_mathml(self, name):
        """Every formula is converted, tags nest, and no markup is left between formulas."""
        statement = load(name).statement
        html = str(typeset(statement))
        Page(html)
        formulas = [piece for piece in pieces(statement) if piece.category == "math"]
        assert html.count("<math>") >= len(formulas)
        assert not re.search(r"[_^$\\]", re.sub(r"<math>.*?</math>", "", html))

    def test_everything_else_is_escaped(self):
        html = str(typeset("<script>no</script> & `<code>` if alpha < b > c"))
        assert "<script" not in html
        assert "&amp; <code>&lt;code&gt;</code>" in html
        assert set(re.findall(r"<(\w+)", html)) <= {"math", "mrow", "mi", "mo", "code", "wbr"}

    def test_a_formula_that_cannot_be_converted_is_shown_as_text(self, monkeypatch):
        def fail(latex):
            raise ValueError(latex)

        monkeypatch.setattr("latex2mathml.converter.convert", fail)
        assert "zeta_77 &lt; 3" in str(typeset("where zeta_77 < 3 holds"))

    def test_brackets_next_to_a_formula_stay_on_its_line(self):
        html = str(typeset("holds (alpha_55 > 0), it"))
        line = '<span class="line">'
        assert re.fullmatch(rf"holds {line}{line}\(<math>.*</math></span>\),</span> it", html)


def test_every_verdict_has_a_meaning():
    assert {verdict.value for verdict in Verdict} < set(MEANING)


def test_command_that_reruns():
    assert rerun({"claim": "x", "quick": False}) == "patchdyn reproduce --only x --out report-x"
    assert rerun({"claim": "x", "thorough": True}).startswith("patchdyn reproduce --thorough ")
    assert " --seed 2 --only x" in rerun({"claim": "x", "seed": 2})
    assert "--seed" not in rerun({"claim": "x", "seed": 0})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        (1 / 3, "0.333333"),
        (7, "7"),
        ({"a": [1, 2.0], "b": None}, "a = 1, 2"),
        ([{"D": 8}, {"D": 9}], "D = 8; D = 9"),
    ],
)
def test_values_as_short_text(value, text):
    assert show(value) == text
