"""The two names of a function's seed: random_state of scikit-learn, and rng of SPEC 7."""

import inspect

import numpy as np
import pytest
from conftest import refused

import gpuens as ge
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

LABELS = np.random.default_rng(0).integers(0, 3, (40, 5))


def functions_that_draw():
    """Return the public functions, by name, that have an argument random_state or pass one on."""
    modules = [ge, *(getattr(ge, name) for name in ge.__all__ if inspect.ismodule(getattr(ge, name)))]
    functions = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}
    return {
        name: function
        for name, function in functions.items()
        if inspect.isfunction(function) and {"random_state", "rng"} & inspect.signature(function).parameters.keys()
    }


def test_functions_that_draw_are_seen():
    assert {
        "gpuens.cluster",
        "gpuens.consensus",
        "gpuens.evidence.pairs",
        "gpuens.partition.metis",
        "gpuens.sc.consensus",
    } <= {*functions_that_draw()}


@pytest.mark.parametrize("name", functions_that_draw())
def test_a_function_has_both_names(name):
    function = functions_that_draw()[name]
    rng = inspect.signature(function).parameters["rng"]
    assert (rng.default, rng.kind) == (NOT_GIVEN, rng.KEYWORD_ONLY)
    refused(lambda: function(rng=0, random_state=0), TypeError, "rng and random_state", "one")


def drawn(**seed):
    return ge.evidence.pairs(LABELS, exact=False, n_pairs=50, **seed).counts.tolist()


def test_a_seed_means_the_same_under_both_names():
    assert drawn() == drawn(rng=0) == drawn(random_state=0)
    assert drawn(rng=7) == drawn(random_state=7) == drawn(rng=np.random.default_rng(7)) != drawn()
    words = [3, 4]
    assert drawn(rng=words) == drawn(rng=np.array(words)) == drawn(random_state=np.random.SeedSequence(words))
    assert drawn(rng=None) != drawn(rng=None)
    rng = np.random.default_rng(7)
    assert drawn(rng=rng) != drawn(rng=rng)  # a generator continues


def test_the_seed_of_a_method():
    seeds = ({"rng": 3}, {"random_state": 3}, {"rng": np.random.default_rng(3)})
    first, *others = (ge.consensus(LABELS, 4, method="kcc", n_init=1, **seed).tolist() for seed in seeds)
    assert others == [first, first]
    assert ge.consensus(LABELS, 4, method="kcc", n_init=1, rng=4).tolist() != first
    refused(lambda: ge.consensus(LABELS, 3, method="eac", rng=3), TypeError, "rng", "method 'eac'")


@pytest.mark.parametrize(
    ("rng", "kind", "mentioned"),
    [
        ("7", TypeError, "rng must be a whole number"),
        (True, TypeError, "rng must be a whole number"),
        (1.5, TypeError, "rng must be a whole number"),
        (-1, ValueError, "rng must be at least 0"),
        (np.random.RandomState(0), TypeError, "pass it as random_state"),
        ([1, "a"], TypeError, "rng must be a whole number"),
    ],
)
def test_what_is_no_seed(rng, kind, mentioned):
    refused(lambda: drawn(rng=rng), kind, mentioned)


def test_a_seed_by_position_counts_too():
    def draw(n, random_state=0, rng=NOT_GIVEN):
        return n, random_state

    both = takes_rng(draw)
    assert (both(3), both(3, 4), both(3, rng=5), both(3, rng=NOT_GIVEN)) == ((3, 0), (3, 4), (3, 5), (3, 0))
    refused(lambda: both(3, 4, rng=5), TypeError, "one of them")


@pytest.mark.parametrize("kind", [ge.KCC, ge.Sample, ge.partition.METIS])
def test_parameters_of_objects_have_one_name(kind):
    assert "random_state" in inspect.signature(kind).parameters
    assert "rng" not in inspect.signature(kind).parameters
