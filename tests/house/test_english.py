"""Comments and first lines of docstrings can be understood with the code covered: their subject is a noun."""

import ast
import re
import tokenize
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for folder in ("gpuens", "tests", "bench") for path in (ROOT / folder).rglob("*.py"))
CLAUSE = re.compile(r"(Return|Write|Yield|Do|Say) (what|those|that which)\b")
HANGING = re.compile(r"#\s*(of|that|which|those|what)\b")


def first_lines(text):
    """Yield the first line of every docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and (found := ast.get_docstring(node)):
            yield found.splitlines()[0]


def first_words(text):
    """Yield the first line of every comment."""
    lines, before = text.splitlines(), None
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, alone = token.start[0], lines[token.start[0] - 1].lstrip().startswith("#")
            if not (alone and before == row - 1):
                yield token.string
            before = row if alone else None


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_begin_with_a_subject(path):
    text = path.read_text(encoding="utf-8")
    assert [line for line in first_lines(text) if CLAUSE.match(line)] == []
    assert [comment for comment in first_words(text) if HANGING.match(comment)] == []


def test_the_rule_finds_what_it_forbids():
    text = '"""Return what a user wants."""\nx = 1  # of a cluster\n# which is\n# of two lines\n'
    assert [line for line in first_lines(text) if CLAUSE.match(line)] == ["Return what a user wants."]
    assert [comment for comment in first_words(text) if HANGING.match(comment)] == ["# of a cluster", "# which is"]
