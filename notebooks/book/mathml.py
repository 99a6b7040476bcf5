"""Convert the formulas of the book to MathML, so that pages need no scripts and no network."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

#: The library copies commands that it does not know into its output.
_UNKNOWN = re.compile(r"\\[A-Za-z]+|&#x0005C;[A-Za-z]+")


def mathml(latex: str, *, block: bool = False) -> str:
    """Return a formula in MathML.

    Raises
    ------
    ValueError
        If the LaTeX cannot be read; the message names an unknown command.
    """
    try:
        result = str(convert(latex, display="block" if block else "inline"))
    except Exception as failure:  # the library raises many types
        raise ValueError(f"{type(failure).__name__}: {failure}") from failure
    if unknown := _UNKNOWN.search(result):
        raise ValueError(f"{unknown.group()} is not known")
    return result


def _visit(self: Any, node: Any, *, block: bool) -> None:
    from docutils.nodes import SkipNode
    from sphinx.util.logging import getLogger

    latex = node.astext()
    try:
        formula = mathml(latex, block=block)
    except ValueError as failure:
        getLogger(__name__).warning("no MathML for %s: %s", latex, failure, location=node)
        formula = f"<code>{self.encode(latex)}</code>"
    if block:
        label = f' id="{node["ids"][0]}"' if node.get("ids") else ""
        formula = f'<div class="math"{label}>{formula}</div>\n'
    self.body.append(formula)
    raise SkipNode


def _inline(self: Any, node: Any) -> None:
    _visit(self, node, block=False)


def _block(self: Any, node: Any) -> None:
    _visit(self, node, block=True)


def setup(app: Any) -> dict[str, bool]:
    """Register the MathML renderer with Sphinx."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
