"""Pages made from the project itself: a chapter for each theory, and the notebooks."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from simulations import theories
from simulations.reproduction.folder import StoredReport
from simulations.reproduction.registry import load
from symbolic import catalogue
from symbolic.core.printing import formula
from symbolic.core.prose import pieces

MADE = "made"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|#])")


def write_chapters(folder: Path, report: str | None) -> None:
    """Write the pages that are made into a folder of their own, empty before."""
    made = folder / MADE
    for left in (made, folder / "api"):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(folder.parent, made / "notebooks", ignore=_not_of_the_book)
    shutil.copy(folder.parents[1] / "CONTRIBUTING.md", made / "contributing.md")
    stored = StoredReport.read(Path(report)) if report else None
    chapters = made / "theories"
    chapters.mkdir()
    for number, name in enumerate(theories.names(), start=1):
        page = chapters / f"{number}-{name}.md"
        page.write_text(chapter(name, stored, chapters), encoding="utf-8")


def _not_of_the_book(folder: str, names: list[str]) -> list[str]:
    return [
        name for name in names if name == "book" or Path(name).suffix not in ("", ".ipynb", ".png")
    ]


def chapter(name: str, report: StoredReport | None, made: Path) -> str:
    """Return a theory as Markdown: its argument, what can be set and told, and its claims.

    With a report the verdicts, findings and first figures of the claims are part of it; the
    figures are copied to ``made``.
    """
    theory = theories.load(name)
    package = dict(zip(theories.names(), theories.packages_of_derivations()))[name]
    lines = [f"# {_upper(theory.title)}", "", "## The argument", ""]
    derivations = catalogue.Catalogue((package,))
    for key, (title, place) in derivations.titles.items():
        lines += [f"### {_upper(markdown(title))}", "", f"*{markdown(place)}*. `{key}`", ""]
        derivation = derivations[key]
        lines += [markdown(derivation.statement), ""]
        for equation in derivation.equations:
            note = markdown(equation.note) if equation.note else f"`{equation.name}`"
            lines += [
                f"{_upper(note)}:",
                "",
                "$$",
                formula(equation, derivation.notation),
                "$$",
                "",
            ]
    lines += ["## What can be set", "", *_definitions(theory.parameters)]
    lines += ["## What a run tells", "", *_definitions(theory.outcomes)]
    lines += ["## Claims", ""]
    for claim in theories.submodule(name, "claims").CLAIMS:
        lines += _claim(claim, report, made)
    return "\n".join(lines)


def _definitions(quantities: Any) -> list[str]:
    found = []
    for one in quantities:
        found += [f"`{one.name}`", f": {markdown(one.meaning)}", ""]
    return found


def _claim(name: str, report: StoredReport | None, made: Path) -> list[str]:
    claim = load(name)
    lines = [f"### {name}", "", f"*{markdown(claim.place)}*. {markdown(claim.statement)}", ""]
    for label, text in (("Measured", claim.method), ("Criterion", claim.criterion)):
        lines += [f"{label}: {markdown(text)}", ""]
    record = report.record(name) if report is not None else None
    if report is None or record is None or "error" in record:
        return lines
    lines += [f"**{record['verdict']}**: {markdown(record['finding'])}", ""]
    for figure in record["figures"][:1]:
        shutil.copy(report.image_path(figure["name"]), made / f"{figure['name']}.png")
        lines += [f"```{{figure}} {figure['name']}.png", "", markdown(figure["caption"]), "```", ""]
    return lines


def markdown(sentence: str) -> str:
    """Return a sentence in Markdown, its formulas between dollars."""
    marks = {"math": "${}$", "code": "`{}`", "emphasis": "*{}*"}
    return "".join(
        _SPECIAL.sub(r"\\\1", piece.source)
        if piece.category == "words"
        else marks[piece.category].format(piece.shown)
        for piece in pieces(sentence)
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
