"""Print derivations as text, as a LaTeX document, and as Python functions."""

import re
import textwrap

import sympy as sp

from symbolic.core import prose
from symbolic.core.derivation import Derivation, Equation, Notation
from symbolic.core.proof import Proof

WIDTH = 96
#: Longer formulas (characters of LaTeX) in a statement are displayed.
_IN_LINE = 70

_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage{amsmath,amssymb,graphicx}
\newcommand{\fitted}[1]{\sbox0{$\displaystyle #1$}%
  \ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi}
\setlength{\parindent}{0pt}
\sloppy
\begin{document}
"""


def text(derivation: Derivation, proofs: list[Proof]) -> str:
    """Return plain text, with two-dimensional formulas if they fit, else in wrapped lines."""
    statement = textwrap.wrap(derivation.statement, WIDTH)
    lines = [derivation.title, f"Place: {derivation.place}", "", *statement, ""]
    for equation in derivation.equations:
        note = f"   ({equation.note})" if equation.note else ""
        reason = equation.justification
        wrapped = textwrap.wrap(f"[{reason}]", WIDTH) if reason else []
        formula = (f"    {x}" for x in (*_plain(equation, derivation.notation), *wrapped))
        heading = textwrap.wrap(f"{equation.name}{note}:", WIDTH, break_on_hyphens=False)
        lines += [*heading, *formula, ""]
    return "\n".join([*lines, *_outcome(proofs)]).rstrip() + "\n"


def _plain(equation: Equation, notation: Notation) -> list[str]:
    """Return an equation as lines of plain text."""
    names = {symbol: sp.Symbol(name) for symbol, name in notation.text.items()}
    left, right = equation.left.xreplace(names), equation.shown.xreplace(names)
    shown = sp.Eq(left, right, evaluate=False)
    block = sp.pretty(shown, use_unicode=False, wrap_line=False).splitlines()
    if max(map(len, block)) <= WIDTH:
        return [line.rstrip() for line in block]
    return textwrap.wrap(f"{sp.sstr(left)} = {sp.sstr(right)}", WIDTH, break_long_words=False)


def _outcome(proofs: list[Proof]) -> list[str]:
    lines = []
    for proof in proofs:
        lines.append(f"{proof.claim}: {proof.summary()}")
        lines += [f"    {number:5d}  {identity}" for identity, number in proof.identities.items()]
        for description, value in proof.facts.items():
            text = f"    {description}: {value}"
            lines += textwrap.wrap(text, WIDTH, subsequent_indent=" " * 6)
        lines += [f"    FAILS: {failure}" for failure in proof.failures]
    return lines


def latex(derivation: Derivation, proofs: list[Proof]) -> str:
    """Return a LaTeX document that compiles on its own (amsmath, geometry, graphicx)."""
    lines = [_PREAMBLE + rf"\section*{{{prose.latex(derivation.title)}}}"]
    lines += [
        rf"\emph{{{prose.latex(derivation.place)}}}",
        "",
        prose.latex(derivation.statement, widest=_IN_LINE),
        "",
    ]
    for equation in derivation.equations:
        reason = equation.justification
        note = prose.latex(equation.note) + (
            rf" \emph{{[{prose.latex(reason)}]}}" if reason else ""
        )
        if note:
            lines.append(rf"\medskip {note.strip()}:")
        lines += [
            r"\begin{equation*}",
            rf"\fitted{{{formula(equation, derivation.notation)}}}",
            r"\end{equation*}",
        ]
    for proof in proofs:
        lines += [rf"\paragraph{{{prose.latex(proof.claim)}}} {prose.latex(proof.summary())}."]
        if proof.identities:
            items = (f"{identity}: {number}" for identity, number in proof.identities.items())
            lines += [r"\begin{itemize}", *(rf"\item {prose.latex(item)}" for item in items)]
            lines += [r"\end{itemize}"]
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def formula(equation: Equation, notation: Notation) -> str:
    """Return an equation in LaTeX."""
    left, right = equation.left, equation.shown
    symbols = left.free_symbols | right.free_symbols
    names = {x: notation.latex.get(x) or _latex_name(x.name) for x in symbols}
    return f"{sp.latex(left, symbol_names=names)} = {sp.latex(right, symbol_names=names)}"


def annotated(equation: Equation, notation: Notation) -> str:
    """Return an equation as LaTeX for a display, followed by its remark."""
    remark = "".join(
        piece.shown if piece.category == "math" else rf"\text{{{piece.source}}}"
        for piece in prose.pieces(equation.note)
    )
    return formula(equation, notation) + (rf"\qquad {remark}" if remark else "")


def _latex_name(name: str) -> str:
    r"""Return ``leading_gamma`` as \mathrm{leading}_{\gamma}, and so on."""
    words = [_latex_word(word) for word in name.split("_")]
    return words[0] + (f"_{{{' '.join(words[1:])}}}" if words[1:] else "")


def _latex_word(word: str) -> str:
    if len(word) == 1 or word.isdigit():
        return word
    command = sp.latex(sp.Symbol(word))
    return command if command.startswith("\\") else rf"\mathrm{{{word}}}"


def python(derivation: Derivation, proofs: list[Proof]) -> str:
    """Return Python source: the emitted kernels, if any, else one function per equation."""
    if derivation.emitted is not None:
        return derivation.emitted()
    lines = [f'"""{derivation.title} ({derivation.place})."""', "", "import math", ""]
    for equation in derivation.equations:
        lines += _function(equation) if equation.evaluates else _comment(equation)
    return "\n".join(lines).rstrip() + "\n"


def _function(equation: Equation) -> list[str]:
    arguments = sorted(symbol.name for symbol in equation.right.free_symbols)
    body = sp.pycode(equation.right, fully_qualified_modules=True)
    note = equation.note or str(equation.left)
    head = f"def {equation.name}({', '.join(arguments)}):"
    return ["", head, f'    """{note}."""', f"    return {body}", ""]


def _comment(equation: Equation) -> list[str]:
    shown = re.sub(r"\s+", " ", f"{equation.left} = {equation.right}")
    return ["", f"# {equation.name}: {shown}", ""]
