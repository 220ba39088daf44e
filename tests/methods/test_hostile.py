"""Wrong values of every kind for every parameter: each call works, or raises an error of one sentence."""

import fractions
import inspect
import signal
import sys
import tempfile
import warnings
from functools import partial

import numpy as np
import pytest
from conftest import METHODS, one_sentence, refused, structured_labels
from hostile import HOSTILE

import gpuens as ge

LABELS, _ = structured_labels(60, 6, 3, noise=0.2, missing=0.05, seed=1)
ENS = ge.Ensemble(LABELS)
FEATURES = np.random.default_rng(0).standard_normal((60, 4))
SECONDS = 10.0  # one call takes a tenth of a second, but the machine may be busy


def fitted(kind, **given):
    parameters = {"n_clusters": 3, **given}
    return METHODS[kind](**parameters).fit(ENS)


def sampled(size=20, **given):
    return ge.EAC(1, reduction=ge.Sample(size, **given)).fit(ENS)


def grown(**given):
    return ge.EAC(1, reduction=ge.CATree(**given)).fit(ENS)


def base_clusterings(**given):
    return ge.generate.kmeans_ensemble(FEATURES, **{"n_clusterings": 2, "n_clusters": 3, "max_iter": 3, **given})


def metis(**given):
    similar = np.abs(np.subtract.outer(np.arange(8), np.arange(8))).astype(float)
    return ge.partition.metis(similar, **{"weights": np.ones(8, dtype=int), "n_parts": 2, **given})


def transfer_cut(**given):
    return ge.partition.transfer_cut(ge.Rows(ENS), np.ones(ENS.n_clusters), **{"n_clusters": 3, **given})


def in_chunks(function, *more, **given):
    import dask.array

    return function(*more, dask.array.from_array(LABELS, chunks=(20, -1)), **given)


def read_in_chunks(**given):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/labels.npy", LABELS)
        return ge.distributed.read_labels(f"{folder}/labels.npy", **given).compute()


def joined(**given):
    with ge.distributed.connected(None, **given):
        pass


EST, SOFT, TREE = ge.LWEA(3).fit(ENS), ge.SCEC(3).fit(ENS), ge.CATree().grow(ENS)
NOT_SETTINGS = {"self", "X", "y", "ens", "ensemble", "labels", "estimator", "tree", "a", "b", "labelings", "ax"}
OF_ENSEMBLES = (
    *(getattr(ge.similarity, name) for name in ("eci", "coassociation", "lwca", "coupled_clusters", "entropy")),
    *(ge.contingency.intersections, ge.contingency.agreement, ge.metrics.stability),
)
FUNCTIONS = [
    *((function, ENS) for function in OF_ENSEMBLES),
    (ge.metrics.nmi, LABELS[:, 0], LABELS[:, 1]),
    (ge.plotting.coassociation_heatmap, ENS, EST.labels_),
    (ge.plotting.dendrogram, EST),
    (ge.plotting.lifetimes, EST),
    (ge.plotting.ca_tree, TREE),
    (ge.plotting.correspondence, SOFT),
]


def settings_of(function, leave_out=()):
    """Return the names of a function's parameters except its inputs."""
    return [name for name in inspect.signature(function).parameters if name not in NOT_SETTINGS | set(leave_out)]


CALLS = {
    **{
        f"{name} {parameter}": (partial(fitted, name), parameter)
        for name, kind in METHODS.items()
        for parameter in kind._get_param_names()
    },
    **{f"Sample {parameter}": (sampled, parameter) for parameter in settings_of(ge.Sample)},
    **{f"CATree {parameter}": (grown, parameter) for parameter in settings_of(ge.CATree)},
    **{
        f"{function.__name__} {parameter}": (partial(call, *given), parameter)
        for function, call, *given in (
            (ge.generate.kmeans_ensemble, base_clusterings),
            (ge.partition.metis, metis),
            *((function, function, *given) for function, *given in FUNCTIONS),
        )
        for parameter in settings_of(function, {"similarities"})
    },
    **{f"transfer_cut {name}": (transfer_cut, name) for name in ("n_clusters", "n_init", "random_state")},
    "coefficients n_neighbors": (partial(ge.similarity.mapping_coefficients, ENS, FEATURES), "n_neighbors"),
    "Ensemble names": (partial(ge.Ensemble, LABELS), "names"),
    "distributed.fit client": (partial(in_chunks, ge.distributed.fit, ge.EAC(2)), "client"),
    "distributed.plan client": (partial(in_chunks, ge.distributed.plan), "client"),
    "distributed.intersections client": (partial(in_chunks, ge.distributed.intersections), "client"),
    "distributed.intersections layout": (partial(in_chunks, ge.distributed.intersections), "layout"),
    "distributed.read_labels chunk_rows": (read_in_chunks, "chunk_rows"),
    "distributed.connected workers": (joined, "workers"),
    "take rows": (ENS.take, "rows"),
    "Dendrogram.cut n_clusters": (EST.dendrogram_.cut, "n_clusters"),
    "Dendrogram.n_clusters_at distance": (EST.dendrogram_.n_clusters_at, "distance"),
    "Tree.cut tau": (TREE.cut, "tau"),
    "Tree.kept gamma": (partial(TREE.kept, 0.4), "gamma"),
    "Tree.reduce counts": (partial(TREE.reduce, 0.4), "counts"),
    "consensus method": (partial(ge.consensus, LABELS, 3), "method"),
    "consensus n_clusters": (partial(ge.consensus, LABELS), "n_clusters"),
}


def complaint(call, parameter, value):
    """Return a message if a call reacts wrongly to a value; else return None."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # warnings about results are allowed: few clusters, ties
            call(**{parameter: value})
    except BaseException as error:
        if type(error) not in (TypeError, ValueError, MemoryError):
            return repr(error)
        try:
            text = one_sentence(error)
        except AssertionError:
            return f"not one sentence: {str(error)[:300]}"
        if parameter not in text or len(text) > 400:
            return f"too long, or does not name {parameter}: {text[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def too_long(*_):
    raise TimeoutError(f"more than {SECONDS} s of the processors")


@pytest.mark.thorough
@pytest.mark.parametrize("case", CALLS)
def test_a_parameter_works_or_is_refused_in_one_sentence_that_names_it(case, monkeypatch):
    call, parameter = CALLS[case]
    monkeypatch.setenv("GPUENS_MEMORY", "1GB")
    signal.signal(signal.SIGPROF, too_long)
    found = {what: complaint(call, parameter, value) for what, value in HOSTILE.items()}
    assert {what: text for what, text in found.items() if text} == {}


# --- numbers of every kind --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_small_integers_do_not_overflow(method):
    """An int8 can hold k, but neither the number of remaining rows nor 4 k."""
    labels, _ = structured_labels(400, 8, 3, noise=0.15, seed=3)
    assert len(np.unique(labels, axis=0)) > 127
    expected = METHODS[method](3).fit_predict(labels)
    np.testing.assert_array_equal(METHODS[method](np.int8(3)).fit_predict(labels), expected)


def test_small_floats_do_not_overflow():
    labels, _ = structured_labels(300, 8, 3, noise=0.15, seed=3)
    expected = ge.SCEC(3, alpha=1.0, beta=2.0).fit(labels)
    found = ge.SCEC(3, alpha=np.float16(1), beta=fractions.Fraction(2)).fit(labels)
    np.testing.assert_array_equal(found.objective_, expected.objective_)


@pytest.mark.parametrize(
    "method", [name for name, kind in METHODS.items() if "random_state" in kind._get_param_names()]
)
def test_a_random_state_of_any_kind_repeats_itself(method):
    for kind in (np.random.RandomState, np.random.default_rng, np.random.PCG64, np.random.SeedSequence, np.uint8):
        a, b = (METHODS[method](3, random_state=kind(7)).fit_predict(ENS) for _ in range(2))
        np.testing.assert_array_equal(a, b)


def test_what_a_reduction_gives_is_looked_at():
    class Nonsense:
        def reduce(self, ensemble):
            return ensemble

    refused(lambda: ge.EAC(2, reduction=Nonsense()).fit(ENS), TypeError, "Nonsense", "must return a gpuens.Reduction")


def test_an_index_beyond_int64_is_not_the_last_object():
    refused(lambda: ENS.take(np.array([2**64 - 1], dtype=np.uint64)), ValueError, "rows contains an index outside")


def test_parameters_are_refused_before_any_work(monkeypatch):
    base = sys.modules["gpuens.methods.parts"]  # the attribute gpuens.methods is a function
    monkeypatch.setattr(base, "core_groups", lambda *_, **__: pytest.fail("worked before it was refused"))
    for k in ("3", 10**400, 0):
        for kind in METHODS.values():
            with pytest.raises((TypeError, ValueError), match="n_clusters must be"):
                kind(k).fit(ENS)


def test_what_names_no_scheduler_is_refused():
    for wrong in (3, b"local", np.array("local"), ["local"]):
        refused(lambda wrong=wrong: ge.distributed.connected(wrong).__enter__(), TypeError, "scheduler must be")
