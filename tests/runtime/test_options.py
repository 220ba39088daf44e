"""Parameters as text: descriptions made from signatures and docstrings, and values read from texts."""

from collections.abc import Sequence
from typing import Any, Literal, Union

import numpy as np
import pytest
from conftest import refused

from gpuens.runtime.options import NEEDED, Option, named, options


class Square:
    """A class with every kind of parameter.

    Parameters
    ----------
    side : float > 0
        How long it is.

        Another paragraph.
    first, second : int
        Two at once.
    plain
        Without a type.

    Attributes
    ----------
    area_ : float
        No parameter.
    """

    def __init__(self, side: float, first: int = 1, second: int | None = None, plain: Any = None, *, more: str = "x"):
        self.given = side, first, second, plain, more


class Cube(Square):
    """A subclass of Square, whose parameter is a Square.

    Parameters
    ----------
    first
        Another one.
    """


def test_a_class_need_not_say_again_what_its_base_says():
    own, base = options(Cube), options(Square)
    assert own["first"].meaning == "Another one."
    assert [own[name] for name in own if name != "first"] == [base[name] for name in base if name != "first"]


KINDS = {"square": Square, "point": object}


def test_options_are_what_signature_and_docstring_say():
    assert list(options(Square).values()) == [
        Option("side", float, NEEDED, "float > 0", "How long it is. Another paragraph."),
        Option("first", int, 1, "int", "Two at once."),
        Option("second", int | None, None, "int", "Two at once."),
        Option("plain", Any, None, "", "Without a type."),
        Option("more", str, "x"),
    ]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "-7", -7),
        (float, "7", 7.0),
        (int | float, "7", 7),
        (float | int | None, "0.5", 0.5),
        (float | None, "None", None),
        (str | None, "nothing", "nothing"),
        (Union[bool, str], "yes", True),  # noqa: UP007
        (bool, "False", False),
        (Literal["a", "b"], "b", "b"),
        (Sequence[float] | None, "1,2,.5", [1.0, 2.0, 0.5]),
        (np.ndarray | str, "1,2", [1.0, 2.0]),
        (Any, "7", 7),
        (Any, "7e3", 7000.0),
        (Any, "1,2", [1.0, 2.0]),
        (Any, "none", None),
        (Any, "a,b", "a,b"),
        (NEEDED, "words", "words"),
        ("Unknown | None", "7", 7),  # an annotation whose name does not exist
    ],
)
def test_a_text_is_read_by_the_annotation(kind, text, value):
    found = Option("size", kind, None).read(text)
    assert (found, type(found)) == (value, type(value))


def test_a_text_that_cannot_be_read_is_refused():
    refused(
        lambda: Option("size", int | None, 1).read("2.5"), ValueError, "size must be a whole number or none", "'2.5'"
    )
    refused(lambda: Option("size", float, 1).read("", "--size"), ValueError, "--size must be a number, not ''")
    refused(lambda: Option("on", bool, 1).read("1"), ValueError, "on must be true or false")
    refused(lambda: Option("w", Sequence[float], 1).read("1,a"), ValueError, "w must be numbers with commas between")
    refused(lambda: Option("f", type(len), 1).read("len"), ValueError, "f must be given in Python, not 'len'")


def test_a_text_names_a_class_and_its_parameters():
    assert named("square:3", KINDS, "shape").given == (3.0, 1, None, None, "x")
    assert named("square: 3, plain=1,2,3 ,second = 4", KINDS, "shape").given == (3.0, 1, 4, [1.0, 2.0, 3.0], "x")
    assert named("square:more=a:b=c,side=.5", KINDS, "shape").given == (0.5, 1, None, None, "a:b=c")
    assert type(named("point", KINDS, "shape")) is object


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("circle", "shape must be one of 'point', 'square', not 'circle'"),
        ("square", "shape 'square' needs side: write square:side=VALUE."),
        ("square:3,size=4", "shape 'square' cannot take 'size=4'; it has side, first, second, plain, more, each given"),
        ("square:3,side=4", "shape 'square' cannot take 'side=4'"),
        ("square:3,first=two", "first must be a whole number, not 'two'"),
        ("point:3", "shape 'point' cannot take '3'; it has no parameters"),
    ],
)
def test_names_are_refused_in_one_sentence(text, words):
    refused(lambda: named(text, KINDS, "shape"), ValueError, words)
