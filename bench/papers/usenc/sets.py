"""Synthetic sets like those of the U-SENC paper, whose generators are not available as readable code."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

Made = tuple[np.ndarray, np.ndarray]


def bananas(n: int, rng: np.random.Generator) -> Made:
    """Return two interlocking half rings."""
    y = rng.integers(2, size=n)
    angle = np.pi * rng.random(n)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X[y == 1] = np.array([1.0, 0.4]) - X[y == 1]
    return noisy(X, 0.08, rng), y


def circles(n: int, rng: np.random.Generator) -> Made:
    """Three concentric circles."""
    y = rng.integers(3, size=n)
    return noisy(ring(n, rng) * (1.0 + y)[:, None], 0.08, rng), y


def face(n: int, rng: np.random.Generator) -> Made:
    """A smiling face: its outline, two eyes and a mouth."""
    y = rng.integers(4, size=n)
    angle = np.pi * (1.15 + 0.7 * rng.random(n))
    mouth = 1.6 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    disc = 0.35 * ring(n, rng) * np.sqrt(rng.random(n))[:, None]
    X = np.select(
        [(y == 0)[:, None], (y == 1)[:, None], (y == 2)[:, None]],
        [3.0 * ring(n, rng), disc + [-1.0, 1.0], disc + [1.0, 1.0]],
        mouth,
    )
    return noisy(X, 0.08, rng), y


def circles_and_gaussians(n: int, rng: np.random.Generator) -> Made:
    """Three concentric circles among eight Gaussians."""
    y = rng.integers(11, size=n)
    turn = 2 * np.pi * (y - 3) / 8
    centers = 5.5 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    X = np.where((y < 3)[:, None], ring(n, rng) * (1.0 + y)[:, None], centers + 0.4 * rng.standard_normal((n, 2)))
    return noisy(X, 0.08, rng), y


def flower(n: int, rng: np.random.Generator) -> Made:
    """A disc and twelve petals."""
    y = rng.integers(13, size=n)
    turn, along = 2 * np.pi * y / 12, rng.random(n)
    across = 0.35 * np.sin(np.pi * along) * (2 * rng.random(n) - 1)
    out = 1.4 + 2.0 * along
    petals = np.stack([out * np.cos(turn) - across * np.sin(turn), out * np.sin(turn) + across * np.cos(turn)], axis=1)
    disc = ring(n, rng) * np.sqrt(rng.random(n))[:, None]
    return noisy(np.where((y < 12)[:, None], petals, disc), 0.03, rng), y


def deformed(images: np.ndarray, n: int, rng: np.random.Generator, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Write n images to a file, as bytes, that are turned, scaled, moved and bent; return it mapped, and their origins.

    As infinite MNIST does: ``images`` (m, height, width) are bent by one of 256 smooth fields, moved by a fourteenth of
    the width, turned by 12 degrees and scaled by 10 per cent, each up to that.
    """
    of = rng.integers(len(images), size=n)
    _, height, width = images.shape
    images = np.pad(images.astype(np.float32), ((0, 0), (1, 2), (1, 2)))  # the margin is black
    middle = np.array([height - 1, width - 1], dtype=np.float32)[:, None, None] / 2
    grid = np.indices((height, width), dtype=np.float32) - middle
    fields = gaussian_filter(rng.uniform(-1, 1, (256, 2, height, width)), (0, 0, height / 7, width / 7))
    fields = (fields * (width / 28 / fields.std())).astype(np.float32)
    found = np.lib.format.open_memmap(path, "w+", np.uint8, (n, height * width))
    for start in range(0, n, 1024):
        which = of[start : start + 1024]
        turn, zoom = rng.uniform(-0.2, 0.2, len(which)), rng.uniform(0.9, 1.1, len(which))
        turned = zoom * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        moved = rng.uniform(-1, 1, (len(which), 2, 1, 1)) * (width / 14)
        places = np.einsum("ijn,jyx->niyx", turned.astype(np.float32), grid) + (moved + middle).astype(np.float32)
        places += fields[rng.integers(len(fields), size=len(which))]
        y, x = np.clip(places, -1, np.array([height, width])[:, None, None]).swapaxes(0, 1) + 1
        low = y.astype(np.int32), x.astype(np.int32)
        down, right = y - low[0], x - low[1]
        first = (low[0] * images.shape[2] + low[1]).reshape(len(which), -1)
        block = images[which].reshape(len(which), -1)
        above, below = (
            np.take_along_axis(block, first + row, 1) * (1 - right.reshape(first.shape))
            + np.take_along_axis(block, first + row + 1, 1) * right.reshape(first.shape)
            for row in (0, images.shape[2])
        )
        bent = above + (below - above) * down.reshape(first.shape)
        found[start : start + len(which)] = np.rint(bent)
    return found, of


def ring(n: int, rng: np.random.Generator) -> np.ndarray:
    angle = 2 * np.pi * rng.random(n)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def noisy(X: np.ndarray, std: float, rng: np.random.Generator) -> np.ndarray:
    found: np.ndarray = (X + std * rng.standard_normal(X.shape)).astype(np.float32)
    return found


MAKERS: dict[str, Callable[[int, np.random.Generator], Made]] = {
    "TB-like": bananas,
    "SF-like": face,
    "CC-like": circles,
    "CG-like": circles_and_gaussians,
    "Flower-like": flower,
}
