"""A compact consensus matrix for pictures: the histogram of all pairs, and the matrix of some objects.

The full matrix of N objects would have N² entries. Its distribution shows how certain the clusterings are, and a few
hundred objects show its blocks. Both have a size independent of N, and replace the clusterings.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.evidence.pairs import Pairs, pairs
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.similarity import Coassociation, ObservedCoassociation

SHOWN = 500  # most objects of the matrix; more are finer than the pixels of a picture
HISTOGRAM = "matches", "copresent", "counts"  # arrays of `Pairs`


@dataclass(frozen=True, eq=False)
class ConsensusMatrix:
    """The consensus matrix of base clusterings: the distribution of its entries, and the entries of some objects.

    Attributes
    ----------
    pairs : Pairs
        The distribution of the entries, see `gpuens.evidence.pairs`.
    objects : ndarray (n,), int64
        The objects whose entries are known, in ascending order: at most 500, drawn at random.
    clusterings : Ensemble (n, n_clusterings)
        The base clusterings of these objects.
    """

    pairs: Pairs
    objects: np.ndarray
    clusterings: Ensemble

    @classmethod
    def of(cls, ensemble: Ensemble, seed: int, missing: str, found: Pairs | None = None) -> "ConsensusMatrix":
        """Return the matrix of an ensemble; ``found`` are its pairs, by default only those of the drawn objects."""
        n = len(ensemble)
        objects = np.sort(np.random.default_rng([seed, 3]).choice(n, min(n, SHOWN), replace=False))
        some = ensemble.take(objects)
        return cls(pairs(Rows(some), missing=missing) if found is None else found, objects, some)

    def matrix(self) -> np.ndarray:
        """Return C of the objects (n, n), float64: the share of the clusterings that put two objects together."""
        rows = Rows(self.clusterings, device="cpu")
        measure: Any = ObservedCoassociation() if self.pairs.missing == "ignore" else Coassociation()
        tile: np.ndarray = measure(rows).tile(rows, 0, len(rows))
        return tile

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the matrix as arrays for `of_arrays`."""
        sizes = self.pairs.cluster_sizes
        return {
            **{name: getattr(self.pairs, name) for name in HISTOGRAM},
            "missing": np.array(self.pairs.missing),
            "exact": np.array(self.pairs.exact),
            "n_objects": np.array(self.pairs.n_objects),
            "sizes": np.concatenate(sizes),
            "offsets": np.cumsum([0, *map(len, sizes)]),
            "objects": self.objects,
            "codes": devices.to_host(self.clusterings.codes),
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray]) -> "ConsensusMatrix":
        offsets = arrays["offsets"]
        sizes = tuple(np.split(arrays["sizes"], offsets[1:-1]))
        matches, copresent, counts = (arrays[name] for name in HISTOGRAM)
        about = str(arrays["missing"]), bool(arrays["exact"]), sizes, int(arrays["n_objects"])
        codes = np.asfortranarray(arrays["codes"])
        some = Ensemble.of_codes(codes, [np.arange(k) for k in np.diff(offsets).tolist()], list(range(len(sizes))))
        return cls(Pairs(matches, copresent, counts, *about), arrays["objects"], some)
