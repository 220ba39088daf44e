"""The data of the CA-tree experiments: mixtures and rings made up, digits read, an image, and their base clusterings.

The paper gives numbers of objects and dimensions, and pictures that cannot be measured. What it leaves open is chosen
here, so that average linkage on all objects is as accurate as in the paper's Table V where that says.
"""

import os
from collections.abc import Callable
from typing import Any

import gpu_ensembles
import numpy as np
from papers import printed_by

import gpuens as ge

PRINTED = printed_by("catree")["sets"]
SIZE = 20  # base clusterings, H
READ = {"Opt-digits": ("odr", 1797), "Pen-digits": ("pd", 0)}  # data set -> its file and first row


def draw(
    name: str, n_objects: int, data: str | os.PathLike | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return features and classes of n objects: generated, or drawn without replacement from a file."""
    if name in MADE_UP:
        return MADE_UP[name](n_objects, rng)
    if name == "8d5k":
        X, y = ellipsoids(1000, np.random.default_rng(0))
    else:
        stored, first = READ[name]
        found = ge.datasets.load(stored, data=data)
        X, y = found.X[first:], found.y[first:]
    drawn = np.sort(rng.choice(len(y), n_objects, replace=False))
    return X[drawn], y[drawn]


def base_clusterings(X: Any, k: tuple[int, int], rng: np.random.Generator, size: int = SIZE) -> ge.Ensemble:
    k = (min(k[0], len(X)), min(k[1], len(X)))
    return ge.generate.kmeans_ensemble(
        X, size, k, init="random", algorithm="full", random_state=rng, progress=False, device="cpu"
    )


def run(
    name: str, n_objects: int, data: str | os.PathLike | None, seed: int, number: int, size: int = SIZE
) -> tuple[ge.Ensemble, np.ndarray]:
    """Return the ensemble and classes of a run, which are the same however many runs there are."""
    rng = np.random.default_rng([seed, n_objects, number])
    X, y = draw(name, n_objects, data, rng)
    return base_clusterings(X, tuple(PRINTED[name]["k"]), rng, size), y


# --- made up ----------------------------------------------------------------------------------------------------------


def spheres(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Spherical5: Gaussians in 16 dimensions about a regular pentagon in two, of which neighbours touch at 2σ."""
    y = np.arange(n) % 5
    centers = np.zeros((5, 16))
    angles = 2 * np.pi * np.arange(5) / 5
    centers[:, :2] = 2 / np.sin(np.pi / 5) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return centers[y] + rng.normal(size=(n, 16)), y


def half_rings(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two interlocking half rings of radius 1, one with three times the objects of the other."""
    y = np.array([0, 1, 1, 1])[np.arange(n) % 4]
    angles, radii = rng.uniform(0, np.pi, n), rng.uniform(0.9, 1.1, n)
    ring = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.where(y[:, None] == 0, ring, [1.0, 0.5] - ring), y


def rings(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """3-rings: concentric, with shares 1 : 4 : 4 of the objects, farther apart than base clusters are wide."""
    y = np.array([0, 1, 1, 1, 1, 2, 2, 2, 2])[np.arange(n) % 9]
    angles = rng.uniform(0, 2 * np.pi, n)
    radii = np.array([0.2, 1.5, 2.8])[y] + rng.uniform(-0.1, 0.1, n)
    return radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1), y


def ellipsoids(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """8d5k: Gaussians about five points of the unit cube in 8 dimensions.

    Strehl & Ghosh's .1 is taken for the standard deviation: as a variance it would not leave them well separated.
    """
    y = np.arange(n) % 5
    return rng.uniform(size=(5, 8))[y] + rng.normal(scale=0.1, size=(n, 8)), y


MADE_UP: dict[str, Callable] = {"Spherical5": spheres, "Half-rings": half_rings, "3-rings": rings}


def many(name: str) -> np.ndarray:
    """Return labels of a million points: of a mixture in few or many dimensions, or unrelated labels."""
    if name == "unrelated":
        rng = np.random.default_rng(0)
        ks = rng.integers(7, 100, size=SIZE, endpoint=True)
        return np.stack([rng.integers(k, size=1_000_000, dtype=np.uint8) for k in ks], axis=1)
    if name == "tiny":
        return gpu_ensembles.labels_of(gpu_ensembles.TINY, "cpu")
    return gpu_ensembles.labels_of(gpu_ensembles.MILLION._replace(dimensions=int(name.split()[0])), "cpu")


# --- images -----------------------------------------------------------------------------------------------------------


def image(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return an image (rows, columns, 3) uint8 and, where it is known, the region of each pixel."""
    if name == "china":
        from sklearn.datasets import load_sample_image

        return load_sample_image("china.jpg"), None
    height = int(name.split()[-1])
    return landscape(height, 4 * height // 3, np.random.default_rng(0))


def landscape(height: int, width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return sky, greenery and a road, each with light that changes across it, and noise."""
    down, across = np.mgrid[0:1:height * 1j, 0:1:width * 1j]  # fmt: skip
    horizon = 0.45 + 0.05 * np.sin(9 * across) + 0.03 * np.sin(31 * across)
    regions = np.where(down < horizon, 0, np.where(np.abs(across - 0.5) < 0.5 * (down - 0.4), 2, 1))
    colors = np.array([[130.0, 170.0, 225.0], [60.0, 105.0, 45.0], [135.0, 130.0, 125.0]])[regions]
    light = np.select([regions == 0, regions == 1], [60 * down - 15, 40 * np.sin(25 * across) * down], 20 * down - 10)
    spread = np.array([8.0, 22.0, 12.0])[regions]
    pixels = colors + light[..., None] + spread[..., None] * rng.normal(size=(height, width, 3))
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8), regions
