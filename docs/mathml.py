"""Formulas of the site as MathML, which browsers draw without a script: LaTeX is translated when the site is built."""

import re
from typing import Any

from latex2mathml.converter import convert

INDEXED = re.compile(r"(?<=<msub>)(<mi>[^<]*</mi>|<mo>(?:arg)?(?:max|min)</mo>)")  # a letter or a name before its index


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.config.html_math_renderer = "mathml"


def write_inline(writer: Any, node: Any) -> None:
    """Write a formula within a line."""
    from docutils.nodes import SkipNode

    writer.body.append(mathml(node.astext()))
    raise SkipNode


def write_block(writer: Any, node: Any) -> None:
    """Write a formula of its own lines, aligned at their &."""
    from docutils.nodes import SkipNode

    lines = r" \\ ".join(filter(None, map(str.strip, node.astext().strip().splitlines())))
    latex = rf"\begin{{split}} {lines} \end{{split}}"
    writer.body.append(f'<div class="formula">{mathml(latex, "block")}</div>')
    raise SkipNode


def mathml(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML; names such as NMI are identifiers, around which operators would leave gaps.

    All letters with an index have the depth of a y: without a font for formulas, Chromium puts the index of a letter
    without depth on the baseline, where x_m would read as a product.
    """
    formula = re.sub(r"<mo>(?!arg|max|min)([A-Za-z]{2,})</mo>", r"<mi>\1</mi>", convert(latex, display=display))
    return INDEXED.sub(r'<mpadded depth="0.22em">\1</mpadded>', formula)
