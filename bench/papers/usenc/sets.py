"""Synthetic sets of the kinds of the U-SENC paper's, whose own generators cannot be read."""

from collections.abc import Callable

import numpy as np

Made = tuple[np.ndarray, np.ndarray]


def bananas(n: int, rng: np.random.Generator) -> Made:
    """Two half rings that reach into each other."""
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
