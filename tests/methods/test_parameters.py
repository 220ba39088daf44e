"""Parameters of estimators: annotated fields make the signature, and docstrings are completed by those of the bases."""

import inspect

import pytest
from conftest import METHODS

import gpuens as ge
from gpuens.methods.base import Linkage, Method
from gpuens.runtime.options import entries_of, names_of


class Sharp(Linkage):
    """Linkage of sharp similarities.

    Parameters
    ----------
    power : float
        The exponent.

    Notes
    -----
    None.
    """

    power: float = 2.0
    marks = 3  # no annotation, no parameter


class Square(Sharp):
    power = 2.0
    device: str = "cpu"


class Written(Method):
    def __init__(self, n_clusters=None, *, twice=1):
        self.n_clusters, self.twice = n_clusters, 2 * twice


class Inherited(Written):
    """No constructor of its own."""


def test_a_signature_has_the_fields_of_a_class_then_those_of_its_bases():
    parameters = inspect.signature(Sharp).parameters
    assert list(parameters) == ["n_clusters", "power", "distance_threshold", "min_size", "reduction", "device"]
    assert parameters["n_clusters"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters["power"].kind is inspect.Parameter.KEYWORD_ONLY
    assert (parameters["power"].default, parameters["power"].annotation) == (2.0, float)
    assert Sharp(3, power=1).get_params() == {
        **dict.fromkeys(("distance_threshold", "min_size", "reduction")), "n_clusters": 3, "power": 1, "device": "auto",
    }  # fmt: skip


def test_a_field_without_an_annotation_becomes_a_constant():
    assert "power" not in Square().get_params()
    assert Square().power == 2.0
    assert Square().device == "cpu"
    with pytest.raises(TypeError, match="power"):
        Square(power=3)


def test_a_constructor_that_is_written_out_stays():
    assert Inherited(2, twice=4).twice == 8
    assert list(inspect.signature(Inherited).parameters) == ["n_clusters", "twice"]


@pytest.mark.parametrize("arguments", [(3, 2.0), (3, 2.0, None)])
def test_parameters_but_the_first_need_their_names(arguments):
    with pytest.raises(TypeError, match="positional"):
        Sharp(*arguments)


def test_a_docstring_takes_missing_entries_from_the_bases():
    entries = dict(entries_of(Sharp.__doc__))
    assert [name for head in entries for name in names_of(head)] == list(inspect.signature(Sharp).parameters)
    assert entries["power : float"] == "    The exponent.\n"
    of_bases = dict(entries_of(Linkage.__doc__))
    assert entries["n_clusters : int, optional"].rstrip() == of_bases["n_clusters : int, optional"].rstrip()
    assert Sharp.__doc__.endswith("Notes\n-----\nNone.")


@pytest.mark.parametrize("kind", [*ge.methods().values(), ge.Consensus, ge.Spatial], ids=lambda kind: kind.__name__)
def test_every_parameter_is_explained_once(kind):
    explained = [name for head, _ in entries_of(kind.__doc__) for name in names_of(head)]
    assert (
        explained == list(inspect.signature(kind).parameters)
        or "Parameters and attributes are those of" in kind.__doc__
    )


def test_an_estimator_keeps_its_arguments_as_they_are():
    for kind in METHODS.values():
        arguments = {name: object() for name in inspect.signature(kind).parameters}
        assert kind(**arguments).get_params(deep=False) == arguments
