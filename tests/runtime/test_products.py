"""Products in tiles: their numbers, their bits, and signals that end them."""

import signal
import threading

import numpy as np
import pytest

import gpuens as ge
from gpuens.runtime import products
from gpuens.runtime.products import gram, product


@pytest.fixture(params=[100, 2500, 2**30], ids=["smallest tiles", "tiles", "one tile"])
def tiles(request, sizes):
    sizes("runtime.products", TILE=request.param, EDGE_MULTIPLE=3)


@pytest.mark.parametrize(("n", "depth", "m"), [(1, 1, 1), (20, 3, 1), (1, 4, 30), (22, 9, 17), (14, 0, 7), (0, 3, 5)])
def test_products_of_whole_numbers_are_exact(tiles, n, depth, m):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (n, depth)).astype(float), rng.integers(-9, 9, (depth, m)).astype(float)
    for one in (a, np.asfortranarray(a)):
        for other in (b, np.asfortranarray(b)):
            np.testing.assert_array_equal(product(one, other), a @ b)
        np.testing.assert_array_equal(gram(one), a @ a.T)


def test_products_of_other_types(tiles):
    a = np.arange(600, dtype=np.float32).reshape(30, 20)
    assert product(a, a.T).dtype == gram(a).dtype == np.float32
    assert product(a, a.T.astype(float)).dtype == np.float64


def test_products_have_the_same_bits_on_any_number_of_threads(sizes):
    sizes("runtime.products", TILE=100**2 * 333)
    a = np.random.default_rng(0).standard_normal((350, 333))
    found = []
    for threads in (1, 2, 3):
        with ge.threads(threads):
            found.append((product(a, a.T), gram(a)))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    np.testing.assert_array_equal(found[0][1], found[0][1].T)
    np.testing.assert_allclose(found[0], [a @ a.T] * 2, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("call", [lambda a: product(a, a), gram], ids=["product", "gram"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_signal_ends_a_product_after_the_tiles_that_were_begun(call, threads, sizes, monkeypatch):
    sizes("runtime.products", TILE=10**2 * 400, EDGE_MULTIPLE=10)
    a, multiplied, multiply_tiles, answered = np.ones((400, 400)), [], products._multiply_tiles, threading.Event()

    def answer(number, frame):
        answered.set()
        raise KeyboardInterrupt

    def told(multiply, tiles):
        def counted(*tile):
            multiplied.append(tile)
            if len(multiplied) == 5:
                signal.raise_signal(signal.SIGINT)
            if len(multiplied) >= 5:
                answered.wait()  # for the main thread
            multiply(*tile)

        multiply_tiles(counted, tiles)

    monkeypatch.setattr(products, "_multiply_tiles", told)
    before = signal.signal(signal.SIGINT, answer)
    try:
        with ge.threads(threads), pytest.raises(KeyboardInterrupt):
            call(a)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(multiplied) < 400  # there are 820 or 1600 tiles
    np.testing.assert_array_equal(call(a), np.full((400, 400), 400.0))


def test_a_tile_takes_at_most_so_many_multiplications():
    """Whatever the sizes, down to the smallest tile; and there are enough tiles for threads."""
    for n, depth, m in ((6000, 6000, 6000), (1024, 1100, 1024), (10**5, 10, 2000), (50, 10**8, 40), (10**6, 3000, 1)):
        edge = products._edge(n, depth, m)
        assert edge**2 * depth <= max(products.TILE, products.EDGE_MULTIPLE**2 * depth)
        assert edge == products.EDGE_MULTIPLE or -(-max(n, m) // edge) >= products.TILES_PER_SIDE
