"""The report: ``report.json`` for programs, ``report.html`` for people."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape
from itertools import groupby
from typing import Any

from simulations.files.store import write_bytes, write_json
from simulations.reproduction.claim import Claim
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.page import PAGE, STYLE

_NOTES = (
    ("This trusts", "depends"),
    ("With --quick", "quick_note"),
    ("With --thorough", "thorough_note"),
)

MEANING = {
    "holds": "the measured numbers support the statement within the tolerance",
    "fails": "the measured numbers contradict the statement at these parameters",
    "finding": "a measured fact that the statement does not settle",
    "error": "the claim could not be run",
    "missing": "the claim has not been run",
}


def write_report(folder: ReportFolder, claims: Mapping[str, Claim]) -> None:
    """Write both reports from the records of a folder.

    ``report.json`` is the list of claims that were run, in order; those that could not be run or
    are missing stand in ``report.html`` and in ``patchdyn.json``. ``claims`` describes claims that
    have no record.
    """
    records = folder.records()
    done = [record for record in records.values() if "error" not in record]
    write_json(folder.path / "report.json", done)
    write_bytes(folder.path / "report.html", render_page(folder, records, claims).encode())


def render_page(
    folder: ReportFolder, records: Mapping[str, dict[str, Any]], claims: Mapping[str, Claim]
) -> str:
    """Return the page: summary first, then each claim, then provenance."""
    entries = [records.get(claim) or _absent(claim, claims.get(claim)) for claim in folder.claims]
    sections = [_section(entry, folder) for entry in entries]
    return PAGE.substitute(
        style=STYLE,
        version=escape(folder.stamp.get("patchdyn", "")),
        notes=_notes(entries, folder.stamp),
        body="\n".join([_summary(entries), *sections]),
        provenance=_provenance(entries, folder.stamp),
    )


def _absent(claim: str, known: Claim | None) -> dict[str, Any]:
    entry = {"claim": claim, "missing": True}
    if known is not None:
        entry |= {"place": known.place, "statement": known.statement, "measures": known.measures}
        entry |= {"paper": known.paper.name if known.paper else "", "criterion": known.criterion}
    return entry


def _verdict(entry: Mapping[str, Any]) -> str:
    if "missing" in entry:
        return "missing"
    return "error" if "error" in entry else str(entry["verdict"])


def _badge(entry: Mapping[str, Any]) -> str:
    verdict = _verdict(entry)
    return f'<span class="badge {verdict}" title="{escape(MEANING[verdict])}">{verdict}</span>'


def _notes(entries: Iterable[Mapping[str, Any]], stamp: Mapping[str, str]) -> str:
    notes = []
    lists = {kind: [e["claim"] for e in entries if _verdict(e) == kind] for kind in MEANING}
    if lists["missing"]:
        notes.append(f"Not run yet: {', '.join(lists['missing'])}. The same command resumes.")
    if lists["error"]:
        notes.append(f"Could not be run: {', '.join(lists['error'])}.")
    if stamp.get("mode") == "quick":
        notes.append("Quick run: smaller problems and shorter horizons than the full run.")
    return "\n".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def _summary(entries: list[dict[str, Any]]) -> str:
    rows = []
    for paper, chapter in groupby(entries, key=lambda entry: entry.get("paper", "")):
        rows.append(f'<tr><th colspan="3" scope="rowgroup">{escape(paper)}</th></tr>')
        rows += [
            f'<tr><td>{_badge(e)}</td><td><a href="#{escape(e["claim"])}">{escape(e["claim"])}</a>'
            f"</td><td>{escape(e.get('place', ''))}</td></tr>"
            for e in chapter
        ]
    body = "\n".join(rows)
    used = dict.fromkeys(_verdict(entry) for entry in entries)
    legend = "; ".join(f"<strong>{kind}</strong>: {escape(MEANING[kind])}" for kind in used)
    return (
        '<div class="scroll"><table><thead><tr><th>Verdict</th><th>Claim</th><th>Place</th></tr>'
        f"</thead><tbody>\n{body}\n</tbody></table></div>\n"
        f'<p class="soft">{legend}.</p>'
    )


def _section(entry: Mapping[str, Any], folder: ReportFolder) -> str:
    parts = [
        f'<section id="{escape(entry["claim"])}">',
        f"<h2>{_badge(entry)} {_heading(entry)}</h2>",
    ]
    if "statement" in entry:
        parts.append(f"<blockquote><p>{escape(entry['statement'])}</p></blockquote>")
        parts.append(f"<p><strong>Measured here:</strong> {escape(entry['measures'])}</p>")
    if entry.get("criterion"):
        parts.append(f"<p><strong>Criterion:</strong> {escape(entry['criterion'])}</p>")
    if "error" in entry:
        parts.append(f'<p class="note">Could not be run: {escape(entry["error"])}</p>')
    elif "missing" in entry:
        parts.append('<p class="note">Not run yet.</p>')
    else:
        parts += _findings(entry)
        parts += [_figure(figure, folder) for figure in entry["figures"]]
    parts += ["<h3>Run it again</h3>", f"<p><code>{escape(rerun(entry))}</code></p>", "</section>"]
    return "\n".join(parts)


def _heading(entry: Mapping[str, Any]) -> str:
    place = entry.get("place", "")
    return escape(f"{entry['claim']}: {place}" if place else entry["claim"])


def _findings(entry: Mapping[str, Any]) -> list[str]:
    parts = [f"<p><strong>{escape(entry['summary'])}</strong></p>"]
    parts += ["<h3>Measured numbers</h3>", _numbers(entry["measured"])]
    parts += ["<h3>Parameters</h3>", _table(_settings(entry))]
    for label, key in _NOTES:
        if entry.get(key):
            parts.append(f'<p class="soft">{label}: {escape(entry[key])}</p>')
    parts += [f'<p class="note">Warning: {escape(text)}</p>' for text in entry["warnings"]]
    return parts


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


def _numbers(measured: Iterable[Mapping[str, Any]]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(one["label"])}</th><td>{escape(show(one["at"]))}</td>'
        f'<td class="number">{escape(show(one["value"]))}</td><td>{escape(one["unit"])}</td></tr>'
        for one in measured
    )
    return (
        '<div class="scroll"><table><thead><tr><th>What</th><th>At</th><th>Value</th><th>Unit</th>'
        f"</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )


def rerun(entry: Mapping[str, Any]) -> str:
    """Return the command that runs one claim again in a folder of its own."""
    quick = " --quick" if entry.get("quick") else " --thorough" if entry.get("thorough") else ""
    return f"patchdyn reproduce{quick} --only {entry['claim']} --out report-{entry['claim']}"


def _table(values: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(str(name))}</th>'
        f'<td class="number">{escape(show(value))}</td></tr>'
        for name, value in values.items()
    )
    return f'<div class="scroll"><table><tbody>\n{rows}\n</tbody></table></div>'


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


def _figure(figure: Mapping[str, str], folder: ReportFolder) -> str:
    path = folder.image_path(figure["name"])
    picture = base64.b64encode(folder.bytes_of(path)).decode("ascii")
    title, caption = escape(figure["title"]), escape(figure["caption"])
    return (
        f'<figure>\n<img alt="{title}" src="data:image/png;base64,{picture}">\n'
        f"<figcaption><strong>{title}.</strong> {caption} "
        f"<br>Files: figures/{path.name}, data/{folder.data_path(figure['name']).name}"
        "</figcaption>\n</figure>"
    )


def _provenance(entries: Iterable[Mapping[str, Any]], stamp: Mapping[str, str]) -> str:
    dates = sorted(entry["date"] for entry in entries if "date" in entry)
    span = " to ".join(dict.fromkeys(dates[:1] + dates[-1:])) or "nothing measured yet"
    names = {"patchdyn": "version", "code": "hash of the source"}
    libraries = {names.get(key, key): value for key, value in stamp.items()}
    libraries["commit"] = stamp.get("commit") or "none: not run from a checkout"
    return _table({**libraries, "measured": span})
