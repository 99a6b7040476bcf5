"""Have Coq check the lemmas of all derivations: ``python -m symbolic.check_coq``.

The record ``coq_checked.json`` has, for each derivation, the lemmas that Coq's kernel accepted,
each with a hash of its text, and the list of what is not exported. A lemma whose hash is in the
record is not checked again; ``--fresh`` checks all. The exit code is 1 if Coq rejects a lemma. The
record counts only for the source from which it was made (`is_current`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbolic.catalogue import CATALOGUE
from symbolic.core.coq import LARGEST

if TYPE_CHECKING:
    from symbolic.core.coq import Source

RECORD = Path(__file__).with_name("coq_checked.json")
#: Reasons why an identity is not exported.
SAME = "both sides are the same expression as written"
SUMS = "compared over sums or matrices of any size"
LONG = f"the lemma would have more than {LARGEST} characters"


@dataclass(frozen=True)
class Row:
    """What Coq's kernel has checked of a derivation.

    Attributes
    ----------
    name, title
        Name and title of the derivation.
    decided
        Number of identities that SymPy decides for symbols, that is, for all values or sizes.
    accepted
        Number of those that are exported to Coq and that its kernel accepted.
    reasons
        Mapping from reasons to the number of identities that are not exported for them.
    file
        File with a proof for all sizes, or about sums over any number of sets, that the kernel
        accepted too; empty if there is none.
    """

    name: str
    title: str
    decided: int
    accepted: int
    reasons: Mapping[str, int]
    file: str = ""


def digest(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def source_digest() -> str:
    """Return a hash of the source of the derivations."""
    folders = ["core", *(package.rsplit(".", 1)[-1] for package in CATALOGUE.theories)]
    files = [
        path
        for folder in folders
        for path in RECORD.with_name(folder).rglob("*")
        if path.suffix in (".py", ".v")
    ]
    return digest("\n".join(path.read_text(encoding="utf-8") for path in sorted(files)))


def record() -> dict[str, Any]:
    """Return the committed record."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8")))


def is_current(checked: Mapping[str, Any]) -> bool:
    """Return whether a record is about the present source of the derivations and SymPy."""
    return bool(checked["source"] == source_digest() and checked["sympy"] == version("sympy"))


def rows(checked: Mapping[str, Any]) -> list[Row]:
    """Return the derivations of a record with an identity that is decided for symbols."""
    return [
        Row(
            name,
            CATALOGUE.titles[name][0],
            entry["decided"],
            len(entry["accepted"]),
            Counter(line.rsplit(": ", 1)[-1] for line in entry["left_out"]),
            entry.get("file", ""),
        )
        for name, entry in checked["derivations"].items()
        if entry["decided"]
    ]


def summary(table: Sequence[Row]) -> str:
    """Return in a few sentences what Coq's kernel has checked, and what SymPy is trusted for."""
    accepted, decided = (sum(getattr(row, x) for row in table) for x in ("accepted", "decided"))
    reasons = sum((Counter(row.reasons) for row in table), Counter())
    return (
        f"Coq's kernel has checked {accepted} of {decided} symbolic decisions as identities or "
        "derivatives over the real numbers, with their premises printed, and that A keeps three "
        "values and v = alpha w* for every L and C. "
        f"In {reasons[SAME]} others both sides are the same expression as written. SymPy is "
        f"still trusted for {reasons[SUMS]} identities over sums or matrices of any size, for "
        f"{reasons[LONG]} whose lemmas would be too long, and for what is done before an exported "
        "identity is stated: substitutions, and the derivatives of logarithms, of weights along a "
        "step, and of second order of F and of the loss."
    )


def lemmas(name: str) -> tuple[Source, dict[str, Any]]:
    """Return the lemmas of a derivation, and its entry in the record if all are accepted."""
    from symbolic.core import coq

    proofs = CATALOGUE[name].prove()
    source = coq.of_proofs(CATALOGUE[name].title, proofs)
    decided = sum(len(x.identities if x.all_sizes else x.decided) for x in proofs)
    accepted = {source.titles[key]: digest(text) for key, text in source.lemmas.items()}
    entry = {"decided": decided, "accepted": accepted, "left_out": list(source.left_out)}
    path = CATALOGUE[name].coq or CATALOGUE[name].coq_lemmas
    return source, entry if path is None else entry | {"file": path.name}


def files() -> dict[str, tuple[Source, str]]:
    """Return a mapping from name to each file that was written by hand, and its hash."""
    from symbolic.core import coq

    paths = [x for name in CATALOGUE for x in (CATALOGUE[name].coq, CATALOGUE[name].coq_lemmas)]
    texts = {x.name: x.read_text(encoding="utf-8") for x in paths if x is not None}
    return {
        name: (coq.Source("", {name: text}, {name: name}), digest(text))
        for name, text in sorted(texts.items())
    }


def _rejected(source: Source, wanted: Mapping[str, str], known: set[str]) -> set[str]:
    """Have Coq check lemmas with unknown hashes; print and return what it rejects."""
    from symbolic.core import coq

    new = {key: text for key, text in source.lemmas.items() if wanted[key] not in known}
    outcome = coq.check(replace(source, lemmas=new))
    for key, message in outcome.rejected.items():
        print(f"not accepted: {source.titles[key]}: {message}", file=sys.stderr)
    return {source.titles[key] for key in outcome.rejected}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the lemmas and write the record; return 0, or 1 if a lemma is rejected."""
    parser = argparse.ArgumentParser(prog="python -m symbolic.check_coq", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="check all lemmas again")
    fresh = parser.parse_args(arguments).fresh
    old: dict[str, Any] = {"files": {}, "derivations": {}}
    if RECORD.exists() and not fresh:
        old = record()
    known = {x for entry in old["derivations"].values() for x in entry["accepted"].values()}
    known |= set(old["files"].values())
    checked: dict[str, Any] = {"source": source_digest(), "sympy": version("sympy")}
    checked |= {"files": {}, "derivations": {}}
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running: list[tuple[str, dict[str, Any], Future[set[str]]]] = []
        for file, (source, text) in files().items():
            outcome = pool.submit(_rejected, source, dict.fromkeys(source.lemmas, text), known)
            running.append((file, {"accepted": {file: text}, "left_out": []}, outcome))
        for name in CATALOGUE:
            source, entry = lemmas(name)
            wanted = {key: entry["accepted"][title] for key, title in source.titles.items()}
            running.append((name, entry, pool.submit(_rejected, source, wanted, known)))
        for name, entry, outcome in running:
            for title in outcome.result():
                del entry["accepted"][title]
                entry["left_out"].append(f"{title}: Coq rejects the lemma")
                failed = True
            print(f"{name}: {len(entry['accepted'])} accepted", flush=True)
            is_file = name not in CATALOGUE
            checked["files" if is_file else "derivations"] |= (
                entry["accepted"] if is_file else {name: entry}
            )
            RECORD.write_text(json.dumps(checked, indent=1) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
