"""Export of theories on ordered positions, as text and as a module that imports only NumPy."""

import inspect
from typing import TYPE_CHECKING

import sympy as sp

from symbolic.theory.export import partitions
from symbolic.theory.export import sequence_jax as jax
from symbolic.theory.loop_tables import Layout, layout
from symbolic.theory.words import Chain, Words

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Imports of a module, by form.
IMPORTS = {
    "python": "import numpy as _np\n",
    "jax": """\
import jax as _jax
import jax.numpy as _np
import numpy as _numpy

_jax.config.update("jax_enable_x64", True)
""",
}
_FUNCTIONS = '''

def loss(x, /, **values):
    """Return the reduced risk at the order parameters x (n,)."""
    return _evaluate(_np.asarray(x, float), **values)[0]


def gradient(x, /, **values):
    """Return the derivative in one entry of each order parameter, (n,)."""
    return _evaluate(_np.asarray(x, float), **values)[1]


def _evaluate({arguments}):
    _out = _np.zeros(len(_x))
    _weight, _blocks = _arguments({rows}, {sets})
    _data = _np.array(_weight), _np.array(_blocks, int).reshape(len(_weight), -1)
    return _mean(_x, _out, [{values}], *_data, *_RELATIONS), _out


def _empty(rows, columns):
    return _np.empty((rows, columns))


def _clear(table):
    table[:] = 0.0


def _multiplicity(element, blocks, size, others):
    """Return the number of elements that an element of an array stands for."""
    used = {{x for x in others if x >= blocks}}
    if element < blocks or element in used:
        return 1.0
    return float(size - blocks - len(used)) if element == min(
        x for x in range(blocks, element + 1) if x not in used) else 0.0


def _highest(number, score, others):
    return score if number > 0 and score > others else others


def _raised(score, top):
    return _math.exp(min(score - top, 0.0))


def _shifted_log(norm, top):
    return top + _math.log(norm)


def _power(base, exponent):
    return base ** int(exponent) if exponent == int(exponent) else base**exponent


def _sigmoid(x):
    return _math.exp(-_softplus(-x))


def _softplus(x):
    return max(x, 0.0) + _math.log1p(_math.exp(-abs(x)))


def _modulus(x):
    return abs(x)


def _relu(x):
    return max(x, 0.0)


def _sign(x):
    return float(x > 0.0) - float(x < 0.0)


def _step(x):
    return float(x > 0.0)


'''


def module(theory: "Theory", header: str, form: str) -> str:
    """Return a module with ``loss`` and ``gradient``.

    Parameters
    ----------
    theory
        The theory.
    header
        Docstring of the module, with names of the theory filled in.
    form
        ``"python"``, loops in NumPy, or ``"jax"``, arrays in JAX.
    """
    from symbolic.theory.source import source

    arrays = layout(theory)
    names = [size.name for size in theory.sizes] + list(theory.free_constants)
    emitted, template = "", jax.FUNCTIONS
    if form == "python":
        emitted, template = source(theory), _FUNCTIONS
        emitted = emitted[emitted.index("def mean(") :].replace("def mean(", "def _mean(", 1)
    text = inspect.getsource(partitions)
    functions = text[text.index("def _tokens") :].replace(": Any", "").replace(" -> Any", "")
    relations = ",\n".join(f"    _np.array({list(map(_number, x.values))})".replace("'", "")
                           for x in arrays.relations)  # fmt: skip
    return (
        f"{header}\nimport math as _math\n\n{IMPORTS[form]}"
        + template.format(
            arguments=", ".join(["_x", "*", *names] if names else ["_x"]),
            named=", ".join(["*", *names] if names else []),
            rows=_rows(arrays),
            sets=_sets(arrays),
            values=", ".join(names),
            static=tuple(range(2, 2 + len(names))),
            counts=", ".join(_code(order.count) for order in theory.orders),
            body="\n".join(f"    {line}" for line in jax.lines(theory)) + "\n",
        )
        + functions
        + f"\n\n_RELATIONS = [\n{relations},\n]\n"
        + f"\n\n{emitted}" * bool(emitted)
    )


def _number(x: sp.Rational) -> str:
    return str(x.p) if x.q == 1 else f"{x.p} / {x.q}"


def _code(x: sp.Expr) -> str:
    """Return the code of an expression in sizes and constants."""
    return str(sp.pycode(x, fully_qualified_modules=False))


def _rows(arrays: Layout) -> str:
    """Return the code of the data orbits."""
    if arrays.source is None:
        return "[((), 0, 1.0)]"
    numbers = ", ".join(map(_code, arrays.source.numbers))
    if isinstance(arrays.source, Chain):
        name = "_steps" if arrays.is_transferred else "_states"
        return f"{name}({arrays.source.over.count}, {numbers})"
    assert isinstance(arrays.source, Words)
    law, size = arrays.source.joint.name, _code(arrays.source.token.size)
    return f"_tokens({law!r}, {size}, {numbers}, {arrays.source.parent!r})"


def _sets(arrays: Layout) -> str:
    """Return the code of the exchangeable sets."""
    rows = (
        f"({arrays.blocks(part) > 0}, {most}, {_code(part.size)})"
        for part, most in zip(arrays.sets, arrays.representatives)
    )
    return f"[{', '.join(rows)}]"


def description(theory: "Theory") -> list[str]:
    """Return the data and the emitted program as lines of text."""
    from symbolic.theory.source import source

    arrays = layout(theory)
    lines = ["", "data"]
    for sequence in theory.data:
        axes = ", ".join(f"{index_set} ({index_set.count})" for index_set in sequence.axes)
        what = "random orthonormal frame" if theory.is_framed else "sequence"
        lines.append(f"  {sequence.name}: {what} over {axes}")
    lines += [
        "  _blocks: for each data orbit, the block of equal tokens of each position, then for each",
        f"    of the sets ({', '.join(map(str, arrays.sets)) or 'none'}) its blocks, with "
        "representatives of the other elements, and size",
        "  _relation0, ...: the relations of positions, row by row",
        "",
        "risk, and gradient in one entry of each order parameter; the flow is dx/dt = -gradient",
        "",
    ]
    return lines + source(theory).splitlines()
