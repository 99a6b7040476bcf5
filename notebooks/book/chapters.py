"""Generated pages of the book: a chapter for each theory, and copies of the notebooks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from simulations import theories
from simulations.case import Quantity
from simulations.reproduction.folder import StoredReport
from simulations.reproduction.registry import load
from symbolic import catalogue
from symbolic.core.printing import formula
from symbolic.core.prose import pieces

GENERATED = "made"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|#])")


def write_chapters(folder: Path, report: str | None) -> None:
    """Write the generated pages into the subfolder ``made`` and remove those of earlier builds."""
    generated = folder / GENERATED
    for old in (generated, folder / "api"):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(folder.parent, generated / "notebooks", ignore=_ignored)
    shutil.copy(folder.parents[1] / "CONTRIBUTING.md", generated / "contributing.md")
    stored = StoredReport.read(Path(report)) if report else None
    chapters = generated / "theories"
    chapters.mkdir()
    for number, name in enumerate(theories.names(), start=1):
        page = chapters / f"{number}-{name}.md"
        page.write_text(chapter(name, stored, chapters), encoding="utf-8")


def _ignored(folder: str, names: list[str]) -> list[str]:
    """Return the entries of a folder that are not copied: all but notebooks and images."""
    return [
        name for name in names if name == "book" or Path(name).suffix not in ("", ".ipynb", ".png")
    ]


def chapter(name: str, report: StoredReport | None, images: Path) -> str:
    """Return the chapter of a theory in Markdown: derivations, parameters, outcomes and claims.

    Parameters
    ----------
    name
        Name of the theory.
    report
        If given, verdicts, findings and the first figure of each claim are included.
    images
        Folder to which these figures are copied.
    """
    theory = theories.load(name)
    package = dict(zip(theories.names(), theories.packages_of_derivations()))[name]
    lines = [f"# {_capitalized(theory.title)}", "", "## The argument", ""]
    derivations = catalogue.Catalogue((package,))
    for key, (title, reference) in derivations.titles.items():
        lines += [
            f"### {_capitalized(markdown(title))}",
            "",
            f"*{markdown(reference)}*. `{key}`",
            "",
        ]
        derivation = derivations[key]
        lines += [markdown(derivation.statement), ""]
        for equation in derivation.equations:
            note = markdown(equation.note) if equation.note else f"`{equation.name}`"
            lines += [
                f"{_capitalized(note)}:",
                "",
                "$$",
                formula(equation, derivation.notation),
                "$$",
                "",
            ]
    lines += ["## Parameters", "", *_definitions(theory.parameters)]
    lines += ["## Outcomes of a run", "", *_definitions(theory.outcomes)]
    lines += ["## Claims", ""]
    for claim in theories.submodule(name, "claims").CLAIMS:
        lines += _claim(claim, report, images)
    return "\n".join(lines)


def _definitions(quantities: Iterable[Quantity]) -> list[str]:
    """Return a definition list of names and meanings."""
    lines = []
    for quantity in quantities:
        lines += [f"`{quantity.name}`", f": {markdown(quantity.meaning)}", ""]
    return lines


def _claim(name: str, report: StoredReport | None, images: Path) -> list[str]:
    """Return the section of a claim, with its result if a report contains it."""
    claim = load(name)
    lines = [f"### {name}", "", f"*{markdown(claim.place)}*. {markdown(claim.statement)}", ""]
    for label, text in (("Measured", claim.method), ("Criterion", claim.criterion)):
        lines += [f"{label}: {markdown(text)}", ""]
    record = report.record(name) if report is not None else None
    if report is None or record is None or "error" in record:
        return lines
    lines += [f"**{record['verdict']}**: {markdown(record['finding'])}", ""]
    for figure in record["figures"][:1]:
        shutil.copy(report.image_path(figure["name"]), images / f"{figure['name']}.png")
        lines += [f"```{{figure}} {figure['name']}.png", "", markdown(figure["caption"]), "```", ""]
    return lines


def markdown(sentence: str) -> str:
    """Return a sentence in Markdown, with its formulas between dollar signs."""
    marks = {"math": "${}$", "code": "`{}`", "emphasis": "*{}*"}
    return "".join(
        _SPECIAL.sub(r"\\\1", piece.source)
        if piece.category == "words"
        else marks[piece.category].format(piece.shown)
        for piece in pieces(sentence)
    )


def _capitalized(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
