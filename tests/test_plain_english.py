"""Private words of this project do not come back: identifiers and prose use standard terms.

`RULES` lists each word with its replacement. A legitimate use matches a pattern of `LEGITIMATE`.
``python -m tests.test_plain_english`` prints every other use, as file:line, word and text.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
CODE = ("dynamics", "notebooks", "patchdyn", "simulations", "symbolic", "tests")
#: Generated files, files that name the words on purpose, and build output.
EXCLUDED = re.compile(
    r"tests/test_plain_english\.py|notebooks/book/(claims\.md|made/|api/)|.*/_emitted\.py|.*/_sizes\.py"
)


class Rule(NamedTuple):
    """A word to avoid.

    Attributes
    ----------
    identifier
        Pattern of a whole identifier without leading underscores; empty if the rule has none.
    part
        Pattern of one word of an identifier, such as ``found`` in ``found_rows``.
    prose
        Pattern in docstrings, comments, messages and Markdown; case is ignored.
    instead
        What to write.
    """

    identifier: str
    part: str
    prose: str
    instead: str


RULES = {
    "one": Rule("one", "", "", "name the object: problem, row, worker"),
    "found": Rule("", "found", "", "result, rows, solution"),
    "kind": Rule(
        "kinds?", "", r"kinds? of|(this|that|one|each|its|of a) kind", "type, dtype, method"
    ),
    "place": Rule("places?", "", r"tak(e|es|ing) place|in its place", "index, row, position"),
    "words": Rule("Words", "", r"in words", "text, description"),
    "holds": Rule(
        "", "", r"(file|folder|directory|store|page|report|archive|module)s? holds?", "contains"
    ),
    "plan": Rule("plans?|[A-Za-z]*Plan", "", "", "algorithm, configuration"),
    "kept": Rule("", "kept|keeps", r"kept", "stored, preserved"),
    "measured": Rule("Measured|measured_at", "", "", "row, measurement"),
    "drawn": Rule("", "", r"drawn (at random|independently)|randomly drawn", "sampled"),
    "judge": Rule("", "judges?", r"judges?|judging", "predicates, evaluate"),
    "says": Rule("", "says|said", r"says?|said", "states, prints"),
    "course": Rule("[A-Za-z]*Courses?|courses?", "", r"(?<!of )courses?", "trajectory"),
    "stated": Rule("stated|Stated[A-Za-z]*", "", "", "theory, user_theory"),
    "refuse": Rule("", "refus(e|es|ed|als?)", r"refus(e|es|ed|als?|ing)", "raise, reject, error"),
    "chance": Rule("", "chances?", r"chances?", "probability"),
    "tell": Rule("", "told|tells?", r"told|tells?|telling", "report, Return whether"),
    "ask": Rule("", "asked|asks", r"asks?|asked|asking", "request, require"),
    "moment": Rule("", "", r"at (the|that|this|one) moment|moment (of|at|when)", "time"),
    "team": Rule("Team|team", "", r"teams?", "WorkerPool, worker processes"),
    "room": Rule("rooms?|houses?", "", r"rooms?|houses?", "package, capacity"),
    "beside": Rule("", "beside", r"beside", "next to, in addition to"),
    "usual": Rule("", "usual", r"usual", "default"),
    "gather": Rule("gathers?", "", r"gathers?", "collect"),
    "ladder": Rule("", "ladders?|rungs?", r"ladders?|rungs?", "levels"),
    "hear": Rule("", "hears?|mouth|ears", r"hears?|heard|mouths?", "receive"),
    "stops": Rule("stops", "", "", "ticks"),
    "twin": Rule("", "twins?", r"twins?", "reference implementation"),
    "lacks": Rule("", "lacks?", r"lacks?|lacking", "is missing"),
    "by name": Rule("by_name", "", r"by name", "mapping from name to ..."),
    "side by side": Rule("side_by_side", "", r"side by side", "in parallel, next to each other"),
    "strewn": Rule("", "strewn", r"strewn", "random subset"),
    "dear": Rule("dear(er)?", "", r"dear(er)?", "expensive"),
    "at hand": Rule("at_hand", "", r"at hand", "available"),
    "by then": Rule("by_then", "", r"by then|gets? nowhere", "write what is meant"),
    "as much of it": Rule("", "", r"as much of it as", "what is needed"),
    "has a say": Rule("", "", r"has a say", "depends on"),
}

#: Legitimate uses: (rule, pattern of the file, pattern of the text around the word).
LEGITIMATE = [
    ("words", r"symbolic/theory/words\.py", r"^Words$"),  # data: words at positions
    ("kind", r".*", r"kind="),  # np.sort(kind=...), pytest
    ("moment", r".*", r"(first|second|third|fourth) moment"),
    # the field of a claim and of a derivation: where it is in the paper
    ("place", r".*/(claim|record|prose|catalogue|contents|derivations?)\.py", r"^place$"),
    ("place", r".*", r"decimal places?"),
    ("twin", r".*", r"twins?( set| Gram|_error|$)"),  # pairs of sets with equal encodings
    ("hear", r"tests/symbolic/theory/.*", r"heard"),  # names of random theories
    ("room", r"tests/symbolic/theory/.*", r"room"),
    # former keywords of theory files, which still work
    ("usual", r"(tests/)?symbolic/theory/.*", r"usual"),
    ("chance", r"symbolic/theory/sources\.py", r"chance"),
]

IDENTIFIERS = {
    word: (
        re.compile(rf"(?:{rule.identifier})\Z") if rule.identifier else None,
        re.compile(rf"(?:^|_)(?:{rule.part})(?:_|\Z)") if rule.part else None,
    )
    for word, rule in RULES.items()
}
PROSE = {
    word: re.compile(rf"(?<![\w-])(?:{rule.prose})(?![\w-])", re.IGNORECASE)
    for word, rule in RULES.items()
    if rule.prose
}
#: Matches where any of them does: one search instead of one per word for the texts without a use.
ANY_PROSE = re.compile(
    rf"(?<![\w-])(?:{'|'.join(rule.prose for rule in RULES.values() if rule.prose)})(?![\w-])",
    re.IGNORECASE,
)


class Use(NamedTuple):
    """A word in a file: the line and the text in which it occurs."""

    path: str
    line: int
    word: str
    text: str

    def __str__(self) -> str:
        instead = RULES[self.word].instead
        return f"{self.path}:{self.line}: {self.word!r} in {self.text!r}; write: {instead}"


def uses_in_identifier(path: str, line: int, name: str) -> Iterator[Use]:
    """Yield the words of an identifier that a rule forbids."""
    for word in words_in_identifier(name.lstrip("_")):
        yield Use(path, line, word, name)


@cache
def words_in_identifier(bare: str) -> list[str]:
    """Return the words of an identifier without leading underscores that a rule forbids."""
    return [
        word
        for word, (whole, part) in IDENTIFIERS.items()
        if (whole and whole.match(bare)) or (part and part.search(bare))
    ]


def uses_in_prose(path: str, line: int, text: str) -> Iterator[Use]:
    """Yield the words of a text that a rule forbids; code in backticks is no prose."""
    blank = re.sub(r"(`+)[^`]+\1", lambda code: re.sub(r"[^\n]", " ", code.group()), text)
    if not ANY_PROSE.search(blank):
        return
    for word, pattern in PROSE.items():
        for match in pattern.finditer(blank):
            start, end = max(0, match.start() - 25), match.end() + 25
            around = " ".join(text[start:end].split())
            yield Use(path, line + text.count("\n", 0, match.start()), word, around)


def uses_in_python(path: str, source: str) -> Iterator[Use]:
    """Yield the forbidden words in what a module defines, its comments and its strings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for line, name in bound_names(node):
            yield from uses_in_identifier(path, line, name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from uses_in_prose(path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from uses_in_prose(path, token.start[0], token.string)


def bound_names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of what a node of the syntax tree defines or assigns."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.lineno, node.name
    elif isinstance(node, ast.arg):
        yield node.lineno, node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.lineno, node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.lineno, node.attr
    elif isinstance(node, ast.alias) and node.asname:
        yield node.lineno, node.asname


def uses_in_markdown(path: str, text: str) -> Iterator[Use]:
    """Yield the forbidden words outside of code blocks."""
    fence = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
    blank = fence.sub(lambda block: re.sub(r"[^\n]", " ", block.group()), text)
    yield from uses_in_prose(path, 1, blank)


def uses_in_notebook(path: str, text: str) -> Iterator[Use]:
    """Yield the forbidden words of its cells; the line is the number of the cell."""
    for number, cell in enumerate(json.loads(text)["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield from (use._replace(line=number) for use in uses_in_markdown(path, source))
        elif not source.startswith("%"):
            yield from (use._replace(line=number) for use in uses_in_python(path, source))


READERS = {".py": uses_in_python, ".md": uses_in_markdown, ".ipynb": uses_in_notebook}


def is_legitimate(use: Use) -> bool:
    """Return whether a pattern of `LEGITIMATE` allows a use."""
    return any(
        use.word == word and re.fullmatch(file, use.path) and re.search(text, use.text)
        for word, file, text in LEGITIMATE
    )


def all_uses() -> list[Use]:
    """Return every use that is not legitimate, file by file."""
    paths = [path for folder in CODE for path in (ROOT / folder).rglob("*")]
    paths += ROOT.glob("*.md")
    uses = []
    for path in sorted(path for path in paths if path.suffix in READERS):
        name = path.relative_to(ROOT).as_posix()
        if not EXCLUDED.match(name):
            uses += READERS[path.suffix](name, path.read_text(encoding="utf-8"))
    return [use for use in uses if not is_legitimate(use)]


def test_private_words_are_not_used() -> None:
    uses = list(map(str, all_uses()))
    assert not uses, "\n".join(["private words, see tests/test_plain_english.py:", *uses])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The run is told to end.", ["tell"]),
        ("Whichever holds, the claim holds; of course.", []),
        ("A folder holds results\nside by side.", ["holds", "side by side"]),
        ("What `told` and ``asked`` mean.", []),
    ],
)
def test_words_in_prose(text: str, words: list[str]) -> None:
    assert [use.word for use in uses_in_prose("a.md", 1, text)] == words


def test_words_in_identifiers() -> None:
    source = "def found_rows(one, two):\n    return [kept for kept in two]  # asked for\n"
    uses = {(use.line, use.word) for use in uses_in_python("a.py", source)}
    assert uses == {(1, "found"), (1, "one"), (2, "kept"), (2, "ask")}


def test_words_in_notebooks() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# A page\n", "It says so."]},
        {"cell_type": "code", "source": ["twin = 1\n"]},
    ]
    uses = list(uses_in_notebook("a.ipynb", json.dumps({"cells": cells})))
    assert [(use.line, use.word) for use in uses] == [(0, "says"), (1, "twin")]


if __name__ == "__main__":
    print(*all_uses(), sep="\n")
