"""A compact consensus matrix for pictures: the histogram of all its entries, and the matrix of at most 500 objects.

The full matrix of N objects would have N² entries. The histogram of its entries shows how certain the clusterings are.
The matrix of a few hundred objects shows its blocks. The sizes of the histogram and of the small matrix do not depend
on N, so that they are stored instead of the clusterings of all objects.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.evidence.pairs import Pairs, pairs
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.similarity import Coassociation, ObservedCoassociation

# largest number of objects in the matrix; the entries of a larger matrix would be smaller than the pixels of a picture
MOST_OBJECTS = 500
HISTOGRAM = "matches", "copresent", "counts"  # names of the arrays of `Pairs` that form the histogram


@dataclass(frozen=True, eq=False)
class ConsensusMatrix:
    """The consensus matrix of base clusterings: the distribution of its entries, and its part for at most 500 objects.

    Attributes
    ----------
    pairs : Pairs
        The distribution of the entries, see `gpuens.evidence.pairs`.
    objects : ndarray (n,), int64
        The objects whose entries are known, in ascending order: at most 500, drawn at random, by weight.
    clusterings : Ensemble (n, n_clusterings)
        The base clusterings of these objects.
    """

    pairs: Pairs
    objects: np.ndarray
    clusterings: Ensemble

    @classmethod
    def of(
        cls,
        ensemble: Ensemble,
        seed: int,
        missing: str,
        distribution: Pairs | None = None,
        counts: np.ndarray | None = None,
    ) -> "ConsensusMatrix":
        """Return the consensus matrix of an ensemble.

        ``distribution`` is that of all pairs of objects; if it is None, that of the drawn objects is computed.
        ``counts`` (n_objects,) are the numbers of copies of each object; several may be drawn.
        """
        n = len(ensemble) if counts is None else int(counts.sum())
        objects = np.sort(np.random.default_rng([seed, 3]).choice(n, min(n, MOST_OBJECTS), replace=False))
        if counts is not None:
            objects = np.searchsorted(np.cumsum(counts), objects, side="right")
        sample = ensemble.take(objects)
        return cls(pairs(Rows(sample), missing=missing) if distribution is None else distribution, objects, sample)

    def matrix(self) -> np.ndarray:
        """Return the matrix C (n, n), float64, of the drawn objects.

        An entry of C is the share of the clusterings that put two objects together.
        """
        rows = Rows(self.clusterings, device="cpu")
        measure: Any = ObservedCoassociation() if self.pairs.missing == "ignore" else Coassociation()
        return measure(rows).tile(rows, 0, len(rows))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays from which `of_arrays` restores this object."""
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
        sample = Ensemble.of_codes(codes, [np.arange(k) for k in np.diff(offsets).tolist()], list(range(len(sizes))))
        return cls(Pairs(matches, copresent, counts, *about), arrays["objects"], sample)
