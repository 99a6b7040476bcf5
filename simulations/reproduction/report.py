"""Report of a run of claims: ``report.json`` for programs, ``report.html`` for readers.

The page is rendered from ``templates/``. It has no scripts, and loads only its figures, which are
files next to it or embedded in it. If a claim has proofs, and the extra ``page`` is installed, it
links to a page next to it, ``check``, that checks certificates.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.files import write_bytes, write_json
from simulations.reproduction.claim import TEXTS, Claim
from simulations.reproduction.folder import ReportFolder, csv_name
from simulations.reproduction.typeset import displayed, first_point, first_sentence, typeset
from symbolic import check_coq

if TYPE_CHECKING:
    import jinja2

#: Label and name of each text below the settings of a claim.
_REMARKS = (
    ("Assumptions", "assumptions"),
    ("With --quick", "quick_note"),
    ("With --thorough", "thorough_note"),
)

#: Meaning of each verdict, and of claims without one.
MEANING = {
    "holds": "the measured numbers support the statement within the tolerance",
    "fails": "a counterexample inside the hypotheses, or a number beyond its error, contradicts it",
    "finding": "an asymptotic or qualitative statement does not appear, or only in part, here",
    "skipped": "an optional package that the claim needs is not installed",
    "error": "the claim could not be run",
    "missing": "the claim has not been run",
}


def write_report(
    folder: ReportFolder, claims: Mapping[str, Claim], *, single_file: bool = False
) -> None:
    """Write ``report.json`` and ``report.html`` from the records of a folder.

    ``report.json`` is the list of the records of finished claims, in order. The page also lists
    claims that could not be run or are missing.

    Parameters
    ----------
    folder
        Folder of the report.
    claims
        Mapping from id to claim, for the texts of claims without a record.
    single_file
        Embed the figures in the page.
    """
    records = folder.records()
    done = [record for record in records.values() if "error" not in record]
    write_json(folder.path / "report.json", done)
    proved = any(map(_proved, done)) and not single_file
    checker = _write_checker(folder.path / "check") if proved else ""
    page = render_page(folder, records, claims, single_file=single_file, checker=checker)
    write_bytes(folder.path / "report.html", page.encode())


def render_page(
    folder: ReportFolder,
    records: Mapping[str, dict[str, Any]],
    claims: Mapping[str, Claim],
    *,
    single_file: bool = False,
    checker: str = "",
) -> str:
    """Return the page: first the results, then each claim, then provenance.

    Parameters
    ----------
    folder, claims, single_file
        As for `write_report`.
    records
        Mapping from claim to record.
    checker
        Address of the page that checks certificates.
    """
    entries = [records.get(claim) or _missing(claim, claims.get(claim)) for claim in folder.claims]
    own = any("command" in entry for entry in entries)
    papers = [(paper, list(chapter)) for paper, chapter in groupby(entries, key=_paper)]
    return _template().render(
        title="A theory in a file, measured" if own else "Claims of the papers, measured",
        source=_image_sources(folder, entries, embed=single_file),
        checker=checker,
        version=folder.stamp.get("patchdyn", ""),
        notes=_notes(entries, folder.stamp),
        papers=papers,
        counts=Counter(_verdict(entry) for entry in entries),
        checked=None if own else _checked(),
        provenance=_provenance(entries, folder.stamp),
    )


def _proved(entry: Mapping[str, Any]) -> bool:
    """Return whether a claim has tubes, whose certificates can be checked."""
    return any(table["name"] == "tubes" for table in entry.get("tables", ()))


def _write_checker(folder: Path) -> str:
    """Write the page that checks certificates; return its address, "" without the extra."""
    from simulations.validated import installed_pyodide, write_page

    if installed_pyodide() is None:
        return ""
    write_page(folder)
    return f"{folder.name}/index.html"


def _checked() -> dict[str, Any]:
    """Return what Coq's kernel has checked; no numbers if the derivations changed since then."""
    record = check_coq.record()
    if not check_coq.is_current(record):
        return {
            "rows": [],
            "summary": "The derivations or SymPy have changed since Coq checked them.",
        }
    rows = check_coq.rows(record)
    return {"rows": rows, "summary": check_coq.summary(rows)}


def _paper(entry: Mapping[str, Any]) -> str:
    return str(entry["paper"])


@cache
def _template() -> jinja2.Template:
    """Return the template of the page; values are escaped, and undefined names raise."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("simulations.reproduction"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "show": show, "verdict": _verdict, "settings": _settings, "rerun": rerun,
        "typeset": typeset, "displayed": displayed, "alt": _alt, "first_point": first_point,
        "proved": _proved,
    }  # fmt: skip
    environment.globals |= {"meaning": MEANING, "remarks": _REMARKS}
    environment.globals |= {"csv_name": csv_name, "zip": zip}
    return environment.get_template("report.html")


def _image_sources(
    folder: ReportFolder, entries: Iterable[Mapping[str, Any]], *, embed: bool
) -> dict[str, str]:
    """Return a mapping from figure to the address of its image, relative to the page."""
    names = [figure["name"] for entry in entries for figure in entry.get("figures", ())]
    if not embed:
        return {name: f"figures/{name}.png" for name in names}
    images = {name: folder.bytes_of(folder.image_path(name)) for name in names}
    return {
        name: f"data:image/png;base64,{base64.b64encode(image).decode('ascii')}"
        for name, image in images.items()
    }


def _alt(figure: Mapping[str, Any]) -> str:
    """Return the alternative text of a figure."""
    return f"{figure['title']}. {first_sentence(figure['caption'])}"


def _missing(claim: str, known: Claim | None) -> dict[str, Any]:
    """Return an entry for a claim without a record."""
    texts = known.texts() if known is not None else {}
    return {**dict.fromkeys((*TEXTS, "paper"), ""), **texts, "claim": claim, "missing": True}


def _verdict(entry: Mapping[str, Any]) -> str:
    if "missing" in entry:
        return "missing"
    return "error" if "error" in entry else str(entry["verdict"])


def _notes(entries: Iterable[Mapping[str, Any]], stamp: Mapping[str, str]) -> list[str]:
    """Return the sentences below the counts: claims without result, mode and seed."""
    notes = []
    claims: dict[str, list[str]] = {}
    for entry in entries:
        claims.setdefault(_verdict(entry), []).append(entry["claim"])
    for verdict, sentence in (
        ("missing", "Not run yet: {}. The same command resumes."),
        ("skipped", "Skipped: {}. Their results name the missing packages."),
        ("error", "Could not be run: {}."),
    ):
        if verdict in claims:
            notes.append(sentence.format(", ".join(claims[verdict])))
    if stamp.get("mode") == "quick":
        notes.append("Quick run: smaller problems and shorter horizons than the full run.")
    if stamp.get("seed", "0") != "0":
        notes.append(f"All random numbers use seed {stamp['seed']} instead of 0.")
    return notes


def _settings(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a claim as label and value."""
    tolerance = entry["tolerance"]
    shown = "none: the verdict is qualitative" if tolerance is None else tolerance
    run = {name: entry[name] for name in ("seed", "seconds")}
    return {**entry["parameters"], "tolerance": shown, **run}


def rerun(entry: Mapping[str, Any]) -> str:
    """Return the command that runs a claim again, in another folder."""
    if "command" in entry:
        return str(entry["command"]) + (" --quick" if entry.get("quick") else "")
    flags = " --quick" if entry.get("quick") else " --thorough" if entry.get("thorough") else ""
    flags += f" --seed {entry['seed']}" if entry.get("seed") else ""
    return f"patchdyn reproduce{flags} --only {entry['claim']} --out report-{entry['claim']}"


def show(value: Any) -> str:
    """Return a value as short text; a missing number is a dash."""
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
    """Return versions, commit and dates as label and value."""
    dates = sorted(entry["date"] for entry in entries if "date" in entry)
    span = " to ".join(dict.fromkeys(dates[:1] + dates[-1:])) or "nothing measured yet"
    names = {"patchdyn": "version", "code": "hash of the source"}
    libraries = {names.get(key, key): value for key, value in stamp.items()}
    commit = stamp.get("commit") or "none: not run from a checkout"
    return {**libraries, "commit": commit, "measured": span}
