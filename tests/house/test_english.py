"""Comments, first lines of docstrings and names can be understood with the code covered: their subject is a noun."""

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

SOURCES = sorted(path for path in (ROOT / "kernels").rglob("*") if path.suffix in {".cpp", ".cu", ".cuh", ".h"})
HANGING_IN_C = re.compile(
    r"(of|that|those|which|what|whether|whose|how|like|(the )?same|such|so that|in which|in place|for each|its?|"
    r"others)\b",
    re.I,
)

ROOMS = sorted(path.name for path in (ROOT / "gpuens").iterdir() if path.is_dir() and path.name != "__pycache__")
# public names of the field
PUBLIC = {
    ("alignment.py", "chosen"),
    ("annotators.py", "same"),
    ("base.py", "other"),  # the operand of __add__
    ("meta_clustering.py", "others"),
    ("runner.py", "done"),
}
PRONOUN = re.compile(
    "found|own|some|given|known|held|said|told|seen|taken|drawn|asked|wanted|chosen|made|got|gone|done|shown|written|"
    "sought|one|others?|it|its|theirs|them|whose|what|which|who|that|those|this_|none|same|such|whole|more|less|most|least|"
    "few|many"
)


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


def first_words_in_c(text):
    """Yield the first line of every comment of C++ or CUDA, without its slashes."""
    in_comment = False
    for line in text.splitlines():
        code, slashes, comment = line.partition("//")
        if slashes and not (in_comment and not code.strip()):
            yield comment.strip()
        in_comment = bool(slashes) and not code.strip()


def assigned_names(text):
    """Yield every name that is assigned, and every argument."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_begin_with_a_subject(path):
    text = path.read_text(encoding="utf-8")
    assert [line for line in first_lines(text) if CLAUSE.match(line)] == []
    assert [comment for comment in first_words(text) if HANGING.match(comment)] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_comments_of_kernels_begin_with_a_subject(path):
    assert [comment for comment in first_words_in_c(path.read_text()) if HANGING_IN_C.match(comment)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_names_are_nouns(room):
    texts = {path: path.read_text() for path in sorted((ROOT / "gpuens" / room).rglob("*.py"))}
    names = {(path.name, name) for path, text in texts.items() for name in assigned_names(text)} - PUBLIC
    assert [f"{file}: {name}" for file, name in sorted(names) if PRONOUN.fullmatch(name.strip("_"))] == []


def test_the_rule_finds_what_it_forbids():
    text = '"""Return what a user wants."""\nx = 1  # of a cluster\n# which is\n# of two lines\n'
    assert [line for line in first_lines(text) if CLAUSE.match(line)] == ["Return what a user wants."]
    assert [comment for comment in first_words(text) if HANGING.match(comment)] == ["# of a cluster", "# which is"]
    text = "i64 n;  // of a cluster\n// The same\n// of two lines\n// rows\n"
    assert [words for words in first_words_in_c(text) if HANGING_IN_C.match(words)] == ["of a cluster", "The same"]
    assert list(assigned_names("def f(own):\n    found = own\n")) == ["own", "found"]
