"""Random edits of example theories: a number, text or argument is replaced by a bad value."""

import ast
from pathlib import Path

import simulations.stated.examples
import symbolic
from simulations.stated.skeleton import SKELETON

SYMPY = '__import__("sympy").'
NUMBERS = [
    "float('nan')",
    "-float('inf')",
    "1j",
    "10**5000",
    "10**400",
    "1e308",
    "10.0**-320",
    "0",
    "-1",
    "3.5",
    "2**70",
    "True",
    f"{SYMPY}nan",
    f"{SYMPY}zoo",
    f"{SYMPY}I",
    f"{SYMPY}Symbol('zz')",
    "__import__('numpy').float64('nan')",
    "__import__('numpy').ones(3)",
    "__import__('decimal').Decimal('NaN')",
]
OBJECTS = ["None", "object()", "[1]", "print", "__import__('sys').exit(0)", "1 / 0"]
TEXTS = [r"'\ud800'", r"'a\x1b[31mb'", r"'a\nb'", "''", "' '", "'x' * 3000", r"'\0'", "'lambda'"]
FORMS = [
    "({}) * float('nan')",
    "({}) * 1j",
    "({}) + 10**5000",
    "(-({})).log()",
    "({}).log()",
    "(-1 - ({}))**0.5",
    "({})**-1",
    "({})**1000",
    "({})**float('nan')",
    "({}) / 0",
    "({}).exp().exp().exp()",
    "({}) * 1e300 * 1e300",
    "({}) + 'x'",
]
#: Arguments that are replaced as a whole.
ARGUMENTS = {
    "start",
    "variance",
    "least",
    "most",
    "divides",
    "defaults",
    "data",
    "names",
    "claims",
    "loss",
    "sizes",
    "parameters",
    "inside",
    "given",
}


def texts():
    """Return a mapping from the names of small examples to their texts."""
    folder = Path(simulations.stated.examples.__file__).parent
    result = {
        name: (folder / f"{name}.py").read_text("utf-8")
        for name in ("induction", "look_up", "teacher")
    }
    result["positional"] = (Path(symbolic.__file__).parent / "positional/stated.py").read_text()
    return result | {"new": SKELETON.replace("NAME", "new")}


def edit(text, rng):
    """Return a text with one expression replaced, and a description of the change."""
    node = rng.choice(list(_expressions(ast.parse(text))))
    old = ast.get_source_segment(text, node)
    new = rng.choice([*NUMBERS, *OBJECTS, *TEXTS, *(form.format(old) for form in FORMS)])
    lines = text.splitlines(keepends=True)
    before = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    after = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    return f"{text[:before]}({new}){text[after:]}", f"line {node.lineno}: {old} -> {new}"


def _expressions(tree):
    """Yield numbers, texts, returned expressions and arguments; not docstrings."""
    for node in ast.walk(tree):
        named = isinstance(node, ast.keyword) and node.arg in ARGUMENTS
        if named or isinstance(node, ast.Return):
            yield node.value
        elif isinstance(node, ast.Call):
            yield from (x for x in node.args if not isinstance(x, ast.Starred))
        elif isinstance(node, ast.BinOp):
            yield from (x for x in (node.left, node.right) if isinstance(x, ast.Constant))
