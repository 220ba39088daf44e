"""The consensus matrix of base clusterings as pictures show it: the histogram of all pairs, the matrix of some objects.

Of N objects it would have N² entries. Its distribution says how sure the clusterings are, and a few hundred objects
show its blocks; both fit whatever N is, and are kept in place of the clusterings.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.evidence.pairs import Pairs, pairs
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.similarity import Coassociation, ObservedCoassociation

SHOWN = 500  # objects: more are finer than the pixels of a picture
HISTOGRAM = "matches", "copresent", "counts"


@dataclass(frozen=True, eq=False)
class ConsensusMatrix:
    """The consensus matrix of base clusterings: the pairs of objects, and its entries for some of them.

    Attributes
    ----------
    pairs : Pairs
        The distribution of the entries, see `gpuens.evidence.pairs`.
    objects : ndarray (n,), int64
        The objects whose entries are known, ascending: drawn at random, at most 500.
    clusterings : Ensemble (n, n_clusterings)
        Their labels.
    """

    pairs: Pairs
    objects: np.ndarray
    clusterings: Ensemble

    @classmethod
    def of(cls, ensemble: Ensemble, seed: int, missing: str, found: Pairs | None = None) -> "ConsensusMatrix":
        """Return that of an ensemble, with its pairs or, by default, those of the drawn objects alone."""
        n = len(ensemble)
        objects = np.sort(np.random.default_rng([seed, 3]).choice(n, min(n, SHOWN), replace=False))
        some = ensemble.take(objects)
        return cls(pairs(Rows(some), missing=missing) if found is None else found, objects, some)

    def matrix(self) -> np.ndarray:
        """Return C of the objects (n, n), float64: the share of the clusterings that put two of them together."""
        rows = Rows(self.clusterings, device="cpu")
        measure: Any = ObservedCoassociation() if self.pairs.missing == "ignore" else Coassociation()
        tile: np.ndarray = measure(rows).tile(rows, 0, len(rows))
        return tile

    def arrays(self) -> dict[str, np.ndarray]:
        """Return it as arrays, from which `of_arrays` makes it again."""
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
