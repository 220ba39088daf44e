"""Sparse matrices with wrong indices: every function refuses them before SciPy reads memory outside their arrays."""

import numpy as np
import pytest
import scipy.sparse
from conftest import refused

import gpuens as ge
from gpuens.labels.features import as_csr, as_features, check_sparse

FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def matrix(form="csr", kind="matrix", shape=(60, 9)):
    made = scipy.sparse.random(*shape, 0.4, format="csr", rng=np.random.default_rng(0))
    return getattr(scipy.sparse, f"{form}_{kind}")(made)


def graph():
    near = np.arange(60) // 10
    return scipy.sparse.csr_matrix((near[:, None] == near).astype(float))


def with_one(values, far):
    """Return integers as int64, with one of them replaced by `far`."""
    return np.where(np.arange(len(values)) == 3, np.int64(far), values.astype(np.int64))


def far_index(X, far=2**33):
    X.indices = X.indices.astype(np.int64)
    X.indices[3] = far
    return X


def far_pointer(X):
    X.indptr = X.indptr.astype(np.int64)
    X.indptr[3] = 2**33
    return X


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # SciPy warns about many diagonals
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_sound_matrices_are_taken(form, kind):
    for shape in ((60, 9), (1, 1), (3, 200)):
        X = matrix(form, kind, shape)
        found = as_csr(X, "X")
        assert found.format == "csr"
        np.testing.assert_array_equal(found.toarray(), X.toarray())
        assert form != "csr" or found is X
        empty = getattr(scipy.sparse, f"{form}_{kind}")(shape)
        assert as_csr(empty, "X").nnz == 0


def test_a_sound_matrix_may_have_room_for_more():
    """SciPy accepts matrices with unused entries at the end, with any values in them."""
    X = matrix()
    more = scipy.sparse.csr_matrix(X.shape)
    more.indptr = X.indptr
    more.indices, more.data = np.append(X.indices, 2**20), np.append(X.data, 1.0)
    check_sparse(more, "X")
    np.testing.assert_array_equal(as_features(more).toarray(), X.toarray())


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("indices", lambda a: with_one(a, -1)),
        ("indices", lambda a: with_one(a, 60)),
        ("indices", lambda a: with_one(a, 2**31 + 1)),
        ("indices", lambda a: with_one(a, 2**32)),  # int32 would turn this index into 0
        ("indices", lambda a: a[:-1]),
        ("indices", lambda a: a.astype(float)),
        ("indices", lambda a: a[:, None]),
        ("indptr", lambda a: with_one(a, 2**20)),
        ("indptr", lambda a: with_one(a, 0)),
        ("indptr", lambda a: a + 1),
        ("indptr", lambda a: a[:-1]),
        ("indptr", lambda a: np.append(a[:-1] * 0 + 2**20, 0)),
        ("indptr", lambda a: a.astype(float)),
    ],
)
def test_matrices_that_lie_are_refused(form, name, spoil):
    X = matrix(form)
    setattr(X, name, spoil(getattr(X, name)))
    for check in (check_sparse, as_csr):
        refused(lambda check=check: check(X, "X"), ValueError, "X is a damaged sparse matrix", "make it anew")


def shifted(dia):
    dia.offsets = dia.offsets.astype(np.int64) + 2**33


@pytest.mark.parametrize(
    ("form", "spoil"),
    [
        ("coo", lambda X: X.coords[1].__setitem__(3, 9)),
        ("lil", lambda X: X.rows.__setitem__(2, [*X.rows[2][:-1], 2**33])),
        ("lil", lambda X: X.data.__setitem__(2, X.data[2][:-1])),
        ("lil", lambda X: setattr(X, "rows", X.rows[:-1])),
        ("dia", shifted),
        ("dia", lambda X: setattr(X, "offsets", X.offsets[:-1])),
        ("dok", lambda X: X.setdefault((0, 2**33), 1.0)),
    ],
)
def test_matrices_of_other_formats_that_lie_are_refused(form, spoil):
    X = matrix(form)
    spoil(X)
    refused(lambda: as_csr(X, "X"), ValueError, "X is a damaged sparse matrix")


ENTRIES = {
    "kmeans_ensemble": lambda X: ge.generate.kmeans_ensemble(X, 2, 2),
    "landmark_ensemble": lambda X: ge.generate.landmark_ensemble(X, 2, 2),
    "leiden_ensemble": lambda X: ge.generate.leiden_ensemble(X, [1.0], 1),
    "choose_k": lambda X: ge.choose_k(features=X, ks=[2, 3], n_clusterings=3),
    "cluster": lambda X: ge.cluster(X, 2),
    "cluster by k-means": lambda X: ge.cluster(X, 2, kind="kmeans"),
    "cluster by leiden": lambda X: ge.cluster(X, 2, kind="leiden"),
    "tome": lambda X: ge.TOME(2).fit(np.arange(60) // 20 % 3, features=X),
    "from_estimators": lambda X: ge.generate.from_estimators([pytest.importorskip("sklearn.cluster").KMeans(2)], X),
}


@pytest.mark.parametrize("spoil", [far_index, far_pointer])
@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_refuses_them(name, spoil):
    if "leiden" in name:
        pytest.importorskip("igraph")
    if name == "tome":
        refused(lambda: ge.TOME(2).fit(np.c_[np.arange(60) // 20], features=spoil(matrix())), ValueError, "features")
        return
    refused(lambda: ENTRIES[name](spoil(matrix())), ValueError, "is a damaged sparse matrix")
    if "leiden" in name:
        refused(lambda: ENTRIES[name](spoil(graph())), ValueError, "X is a damaged sparse matrix")


def test_graphs_in_an_anndata_are_sound():
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("igraph")
    adata = anndata.AnnData(np.zeros((60, 1), np.float32))
    adata.obsp["connectivities"] = graph()
    far_index(adata.obsp["connectivities"])
    refused(lambda: ge.sc.ensemble(adata, [1.0], 1), ValueError, "X is a damaged sparse matrix")


@pytest.mark.parametrize("name", ["kmeans_ensemble", "landmark_ensemble", "leiden_ensemble", "choose_k", "cluster"])
def test_a_huge_shape_is_refused_by_the_memory_budget(name, monkeypatch):
    """SciPy would allocate row pointers for 10**11 rows, and k-means a center with 10**11 features."""
    if "leiden" in name:
        pytest.importorskip("igraph")
    monkeypatch.setenv("GPUENS_MEMORY", "2GB")
    i, entries = np.arange(30), np.ones(30)
    rows = scipy.sparse.coo_array((entries, (i, i % 5)), shape=(10**11, 5))
    columns = scipy.sparse.csr_array((entries, (i, i % 5)), shape=(30, 10**11))
    for X in (rows, columns):
        refused(lambda X=X: ENTRIES[name](X), MemoryError, "800.0 GB", "2.0 GB may be used")


@pytest.mark.parametrize(
    ("n_features", "budget", "kind", "parts"),
    [
        (5 * 10**7, "1GB", MemoryError, ("2.4 GB", "1.0 GB may be used")),
        (2**31, "200GB", ValueError, ("2147483648", "landmark_ensemble")),  # beyond scikit-learn's indices
    ],
)
def test_k_means_counts_its_centers(n_features, budget, kind, parts, monkeypatch):
    i = np.arange(30)
    monkeypatch.setenv("GPUENS_MEMORY", budget)
    X = scipy.sparse.csr_array((np.ones(30), (i, i % 5)), shape=(30, n_features))
    refused(lambda: ge.generate.kmeans_ensemble(X, 2, 3), kind, *parts)
