"""The report: ``report.json`` for programs, ``report.html`` for people (``templates/``).

The page needs no script and asks for nothing but its figures, which lie beside it, or in it where
it is to be mailed as a single file.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from simulations.files.store import write_bytes, write_json
from simulations.reproduction.claim import Claim
from simulations.reproduction.folder import ReportFolder, csv_name
from simulations.reproduction.typeset import displayed, first_sentence, short, typeset

if TYPE_CHECKING:
    import jinja2

#: Rows of a claim's numbers that are seen at once; more are folded.
_OPEN = 10

_NOTES = (
    ("This relies on", "assumptions"),
    ("With --quick", "quick_note"),
    ("With --thorough", "thorough_note"),
)

MEANING = {
    "holds": "the measured numbers support the statement within the tolerance",
    "fails": "a counterexample inside the hypotheses, or a number beyond its error, contradicts it",
    "finding": "an asymptotic or qualitative statement does not show, or not fully, at these sizes",
    "skipped": "what the claim needs is not installed",
    "error": "the claim could not be run",
    "missing": "the claim has not been run",
}


def write_report(
    folder: ReportFolder, claims: Mapping[str, Claim], *, single_file: bool = False
) -> None:
    """Write both reports from the records of a folder.

    ``report.json`` is the list of claims that were run, in order; those that could not be run or
    are missing stand in ``report.html`` and in ``patchdyn.json``. ``claims`` describes claims that
    have no record. With ``single_file`` the page holds its figures.
    """
    records = folder.records()
    done = [record for record in records.values() if "error" not in record]
    write_json(folder.path / "report.json", done)
    page = render_page(folder, records, claims, single_file=single_file)
    write_bytes(folder.path / "report.html", page.encode())


def render_page(
    folder: ReportFolder,
    records: Mapping[str, dict[str, Any]],
    claims: Mapping[str, Claim],
    *,
    single_file: bool = False,
) -> str:
    """Return the page: what was found first, then each claim, then provenance."""
    entries = [records.get(claim) or _absent(claim, claims.get(claim)) for claim in folder.claims]
    papers = [(paper, list(chapter)) for paper, chapter in groupby(entries, key=_paper)]
    return _template().render(
        source=_in_page(folder, entries) if single_file else _beside(entries),
        version=folder.stamp.get("patchdyn", ""),
        notes=_notes(entries, folder.stamp),
        papers=papers,
        counts=Counter(_verdict(entry) for entry in entries),
        provenance=_provenance(entries, folder.stamp),
    )


def _paper(entry: Mapping[str, Any]) -> str:
    return str(entry["paper"])


@cache
def _template() -> jinja2.Template:
    """Return the page to be filled: every value is escaped, a name that is missing an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("simulations.reproduction"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "show": show, "verdict": _verdict, "settings": _settings, "rerun": rerun,
        "typeset": typeset, "displayed": displayed, "alt": _alt, "short": short,
    }  # fmt: skip
    environment.globals |= {"meaning": MEANING, "trust": _NOTES, "open": _OPEN}
    environment.globals |= {"csv_name": csv_name, "zip": zip}
    return environment.get_template("report.html")


def _names(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    return [figure["name"] for entry in entries for figure in entry.get("figures", ())]


def _beside(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return where a page finds its figures: relative to itself."""
    return {name: f"figures/{name}.png" for name in _names(entries)}


def _in_page(folder: ReportFolder, entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the figures themselves."""
    return {
        name: "data:image/png;base64,"
        + base64.b64encode(folder.bytes_of(folder.image_path(name))).decode("ascii")
        for name in _names(entries)
    }


def _alt(figure: Mapping[str, Any]) -> str:
    """Return what a figure shows, for those who do not see it."""
    return f"{figure['title']}. {first_sentence(figure['caption'])}"


def _absent(claim: str, known: Claim | None) -> dict[str, Any]:
    """Return an entry for a claim without a record."""
    words = ("place", "statement", "method", "criterion", "amended")
    entry: dict[str, Any] = {"claim": claim, "missing": True}
    entry |= {word: getattr(known, word, "") for word in words}
    return entry | {"paper": known.paper.name if known is not None and known.paper else ""}


def _verdict(entry: Mapping[str, Any]) -> str:
    if "missing" in entry:
        return "missing"
    return "error" if "error" in entry else str(entry["verdict"])


def _notes(entries: Iterable[Mapping[str, Any]], stamp: Mapping[str, str]) -> list[str]:
    notes = []
    lists = {kind: [e["claim"] for e in entries if _verdict(e) == kind] for kind in MEANING}
    if lists["missing"]:
        notes.append(f"Not run yet: {', '.join(lists['missing'])}. The same command resumes.")
    if lists["skipped"]:
        notes.append(f"Skipped: {', '.join(lists['skipped'])}. Each says what it needs.")
    if lists["error"]:
        notes.append(f"Could not be run: {', '.join(lists['error'])}.")
    if stamp.get("mode") == "quick":
        notes.append("Quick run: smaller problems and shorter horizons than the full run.")
    if stamp.get("seed", "0") != "0":
        notes.append(f"Everything that is sampled uses seed {stamp['seed']} instead of 0.")
    return notes


def _settings(entry: Mapping[str, Any]) -> dict[str, Any]:
    tolerance = "none: the verdict is qualitative"
    if entry["tolerance"] is not None:
        tolerance = entry["tolerance"]
    return {
        **entry["parameters"],
        "tolerance": tolerance,
        "seed": entry["seed"],
        "seconds": entry["seconds"],
    }


def rerun(entry: Mapping[str, Any]) -> str:
    """Return the command that runs one claim again in a folder of its own."""
    flags = " --quick" if entry.get("quick") else " --thorough" if entry.get("thorough") else ""
    flags += f" --seed {entry['seed']}" if entry.get("seed") else ""
    return f"patchdyn reproduce{flags} --only {entry['claim']} --out report-{entry['claim']}"


def show(value: Any) -> str:
    """Return a value as a person would write it; a number that does not exist is a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= 10**6 and not str(value)[1:].strip("0"):
        return f"{value:.6g}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        known = {name: entry for name, entry in value.items() if entry is not None}
        return ", ".join(f"{name} = {show(entry)}" for name, entry in known.items())
    if isinstance(value, list | tuple):
        between = "; " if any(isinstance(entry, Mapping | list) for entry in value) else ", "
        return between.join(show(entry) for entry in value)
    return str(value)


def _provenance(entries: Iterable[Mapping[str, Any]], stamp: Mapping[str, str]) -> dict[str, Any]:
    dates = sorted(entry["date"] for entry in entries if "date" in entry)
    span = " to ".join(dict.fromkeys(dates[:1] + dates[-1:])) or "nothing measured yet"
    names = {"patchdyn": "version", "code": "hash of the source"}
    libraries = {names.get(key, key): value for key, value in stamp.items()}
    commit = stamp.get("commit") or "none: not run from a checkout"
    return {**libraries, "commit": commit, "measured": span}
