"""Leading eigenvectors of graphs of landmarks: polynomials by their recurrence, subspaces of LAPACK, hard spectra."""

import numpy as np
import pytest
from conftest import interrupted
from numpy.polynomial import chebyshev as polynomials

from gpuens.generate import directions
from gpuens.generate.directions import leading_directions
from gpuens.runtime.native import cpu

RNG = np.random.default_rng(0)


def graph(p, n_neighbors=6, dimensions=3, parts=1):
    """Return W and D^-½ of a graph with edges to near points, in several parts without an edge between them."""
    points = RNG.standard_normal((p, dimensions)) + 100.0 * (np.arange(p) % parts)[:, None]
    apart = ((points[:, None] - points) ** 2).sum(axis=2)
    near = apart <= np.sort(apart, axis=1)[:, [n_neighbors]]
    weights = np.where(near | near.T, np.exp(-apart), 0.0)
    weights = weights @ weights.T  # no negative eigenvalue
    return weights, weights.sum(axis=1) ** -0.5


def ring(p):
    """Return W and D^-½ of a cycle, whose largest eigenvalues are nearly 1."""
    step = np.eye(p) + np.roll(np.eye(p), 1, axis=1)
    weights = step @ step.T
    return weights, weights.sum(axis=1) ** -0.5


def same_space(found, expected, atol):
    np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-8)
    cosines = np.linalg.svd(found.T @ expected, compute_uv=False)
    np.testing.assert_allclose(cosines, 1.0, atol=atol)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("degree", [1, 2, 3, 12])
def test_the_filter_is_a_chebyshev_polynomial(width, degree):
    weights, scale = graph(70)
    vectors, cut = RNG.standard_normal((70, width)), 0.4
    values, basis = np.linalg.eigh(weights * scale * scale[:, None])
    filtered = polynomials.chebval(2 * values / cut - 1, np.eye(degree + 1)[degree])
    expected = basis @ (filtered[:, None] * (basis.T @ vectors))
    found = vectors.copy()
    cpu.chebyshev(*cpu.entries_of(weights, scale), cut, degree, found)
    np.testing.assert_allclose(found, expected, atol=1e-9 * abs(filtered).max())


def test_entries_are_those_that_are_not_zero():
    matrix = np.where(RNG.random((9, 9)) < 0.3, RNG.standard_normal((9, 9)), 0.0)
    matrix[4] = 0.0
    scale = RNG.random(9)
    starts, columns, values = cpu.entries_of(matrix, scale)
    rebuilt = np.zeros((9, 9))
    for i in range(9):
        rebuilt[i, columns[starts[i] : starts[i + 1]]] = values[starts[i] : starts[i + 1]]
    np.testing.assert_array_equal(rebuilt, matrix * scale[:, None] * scale)
    assert starts[-1] == np.count_nonzero(matrix)


@pytest.mark.parametrize("n", [1, 2, 10, 40])
@pytest.mark.parametrize("parts", [1, 2, 10])
def test_leading_vectors_span_the_space_of_lapacks(n, parts, monkeypatch):
    weights, scale = graph(400, parts=parts)
    values, vectors = np.linalg.eigh(weights * scale * scale[:, None])
    n = max(n, parts)  # vectors of equal eigenvalues are arbitrary
    monkeypatch.setattr(directions, "leading_eigenvectors", None)
    monkeypatch.setattr(directions, "RESIDUAL", 1e-4)
    found_values, found = leading_directions(weights.copy(), scale, n)
    np.testing.assert_allclose(found_values, values[::-1][:n], atol=1e-7)
    same_space(found, vectors[:, ::-1][:, :n], 1e-6)


def test_vectors_are_as_exact_as_clusters_need_them(monkeypatch):
    weights, scale = graph(600, dimensions=2)
    values, vectors = np.linalg.eigh(weights * scale * scale[:, None])
    monkeypatch.setattr(directions, "leading_eigenvectors", None)
    found_values, found = leading_directions(weights.copy(), scale, 30)
    np.testing.assert_allclose(found_values, values[::-1][:30], atol=1e-3)
    inside = np.linalg.norm(vectors[:, ::-1][:, :25].T @ found, axis=1)  # the last few may turn with later ones
    assert inside.min() > 0.99


def test_a_hard_spectrum_goes_to_lapack(monkeypatch):
    asked = []
    original = directions.leading_eigenvectors
    monkeypatch.setattr(directions, "leading_eigenvectors", lambda *given: asked.append(1) or original(*given))
    monkeypatch.setattr(directions, "MOST_ITERATIONS", 2)
    weights, scale = ring(900)
    values, vectors = np.linalg.eigh(weights * scale * scale[:, None])
    found_values, found = leading_directions(weights.copy(), scale, 5)
    assert asked == [1]
    np.testing.assert_allclose(found_values, values[::-1][:5], atol=1e-10)
    same_space(found, vectors[:, ::-1][:, :5], 1e-6)


def test_wide_blocks_and_empty_landmarks():
    weights, scale = graph(60)
    weights[7], weights[:, 7], scale[7] = 0.0, 0.0, 0.0
    values = np.linalg.eigvalsh(weights * scale * scale[:, None])[::-1]
    for n in (3, 59):  # a narrow block, and all vectors
        found_values, found = leading_directions(weights.copy(), scale, n)
        np.testing.assert_allclose(found_values, values[:n], atol=1e-3 if n == 3 else 1e-9)
        np.testing.assert_allclose(found[7], 0.0, atol=1e-6)


def test_a_signal_ends_the_filter():
    weights, scale = graph(300)
    entries, vectors = cpu.entries_of(weights, scale), RNG.standard_normal((300, 64))
    interrupted(lambda: cpu.chebyshev(*entries, 0.5, 10**7, vectors), 0.1)
