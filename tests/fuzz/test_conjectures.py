"""Random texts as conjectures: a tree, or an error with a caret; no text is executed."""

import ast
import builtins

import pytest

from dynamics import ParameterError
from simulations.falsify import parse

NAMES = ("alpha", "gamma", "rho", "D", "C", "q", "loss", "time", "T1")
PIECES = (
    *NAMES,
    *"+ - * / ^ ** <= >= < > == != ( ) , and or not always eventually min max exp log sqrt".split(),
    *"abs at_end 1 2.5 1e9 .5 0 = ! & ≥ [ lambda __import__ ' ; gamma.__class__".split(),
    "os.system('x')",
    '"',
    "\n",
    "9" * 400,
)


def test_any_text(cases, in_time, monkeypatch):
    for name in ("eval", "exec", "compile", "__import__"):
        real = getattr(builtins, name)

        def guarded(*arguments, _name=name, _real=real, **options):
            flags = _name == "compile" and (arguments[3:] or (options["flags"],))[0]
            if _name == "__import__" or flags == ast.PyCF_ONLY_AST:  # imports, syntax trees
                return _real(*arguments, **options)
            raise AssertionError(f"{_name} was called")

        monkeypatch.setattr(builtins, name, guarded)
    for rng in cases():
        for _ in range(25):
            text = " ".join(rng.choice(PIECES) for _ in range(rng.randint(1, 30)))
            if rng.random() < 0.2:
                text = rng.choice(("(" * 70, "-" * 300, "not " * 90, "1+" * 500, "a" * 3000)) + text
            with in_time():
                message = _error_message(text)
            assert message is None or len(message.splitlines()) in (1, 3)


def _error_message(text):
    try:
        parse(text, set(NAMES))
    except ParameterError as error:
        return str(error)
    return None


@pytest.mark.parametrize("terms", [150, 330, 900])
def test_long_sums(terms):
    text = "+".join(["1"] * terms) + " > 0"
    if terms < 200:
        parse(text, set(NAMES))
    else:
        with pytest.raises(ParameterError, match="more than 200 operators"):
            parse(text, set(NAMES))
