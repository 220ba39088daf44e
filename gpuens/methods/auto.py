"""Auto: runs several methods, and takes the result that agrees best with the base clusterings."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.evidence.agreement import of_rows
from gpuens.labels.rows import Rows
from gpuens.methods.base import Consensus, Parts
from gpuens.partition import Partition, Partitioner
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.failures import OF_ONE_METHOD
from gpuens.similarity import Measure

CHEAP = ("lwgp", "hbgf", "mcla", "ecpcs-mc", "kcc", "voting")  # default candidates; each has a cost linear in N


class Auto(Consensus):
    """Supra-consensus: run several methods, and take the result with the largest ANMI.

    ANMI is the mean NMI of a result and the base clusterings (`gpuens.evidence.agreement`). The result with the largest
    ANMI is not always the result that agrees best with the true classes.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: the number that
        `gpuens.evidence.suggestion` gives.
    methods : str or list of str, optional
        Candidates, such as "lwgp,eac"; of equally good candidates, the first is taken. The default is six methods whose
        cost is linear in the number of objects: lwgp, hbgf, mcla, ecpcs-mc, kcc and voting. Candidates have their
        default parameters.
    random_state : int, None or numpy.random.Generator
    reduction : optional
        An object with ``reduce(rows)``; None means core groups, an exact reduction.
    device : {"auto", "cpu", "cuda"}

    Attributes
    ----------
    choice_ : str
        The chosen method.
    margin_ : float
        The ANMI of the chosen result minus that of the best different result; 0.0 for equally good results, NaN without
        others.
    anmi_ : dict of str to float
        The ANMI of each candidate that could run.
    labels_, n_clusters_, reduction_, similarity_
        See `gpuens.Consensus`; `similarity_` exists only if the chosen method has one.

    References
    ----------
    Strehl & Ghosh, "Cluster ensembles", JMLR 3 (2002) 583-617, eq 5 and §3.5.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> found = ge.Auto(2, methods=["lwgp", "eac"]).fit(labels)
    >>> found.labels_.tolist(), found.choice_
    ([0, 0, 0, 1, 1, 1], 'lwgp')
    """

    cost = "their sum"

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        methods: Any = None,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.methods, self.random_state = n_clusters, methods, random_state
        self.reduction, self.device = reduction, device

    def _parts(self) -> tuple[Measure | None, Partitioner]:
        from gpuens.methods import REGISTRY

        candidates = []
        for name in names_of(CHEAP if self.methods is None else self.methods):
            kind = REGISTRY.load(name)
            own = {"random_state": self.random_state} if "random_state" in kind._get_param_names() else {}
            measure, partitioner = kind(self.n_clusters, **own)._resolved_parts()
            parts = Parts(measure, partitioner, None)
            if parts.needs_features:
                raise ValueError(f"methods: {name!r} needs features of the objects; leave it out.")
            candidates.append((name, parts))
        return None, BestOf(tuple(candidates))


def names_of(methods: Any) -> list[str]:
    """Check the names of methods, given as a list or as a text with commas; return each name once."""
    from gpuens.methods import REGISTRY

    parts = methods.split(",") if isinstance(methods, str) else methods
    try:
        names = list(dict.fromkeys(str(part).strip() if isinstance(part, str) else part for part in parts))
    except TypeError:
        names = []
    if not names:
        raise ValueError(f"methods must be names of methods, in a list or with commas, not {checks.shown(methods)}.")
    for name in names:
        REGISTRY.load(name)
        if name == "auto":
            raise ValueError("methods: 'auto' itself runs several other methods; leave it out.")
    return names


@dataclass(frozen=True)
class BestOf(Partitioner):
    """A partitioner that runs several pairs of similarity and partitioner; it returns the result of largest ANMI."""

    candidates: tuple[tuple[str, Parts], ...]
    takes = ("labels",)

    @property
    def lacks(self) -> str | None:
        return next((parts.partitioner.lacks for _, parts in self.candidates if parts.partitioner.lacks), None)

    @property
    def real_weights(self) -> bool:  # type: ignore[override]
        return all(parts.real_weights for _, parts in self.candidates)

    def check(self, n_clusters: Any, *, any_sign: bool = False) -> None:
        for _, parts in self.candidates:
            parts.partitioner.check(n_clusters, any_sign=parts.similarity is not None and parts.similarity.any_sign)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        anmi: dict[str, float] = {}
        best: tuple[str, Partition, list[str]] | None = None
        refusals = []
        for name, parts in self.candidates:
            try:
                parts.refuse_too_many(rows, n_clusters)
                with checks.recorded() as warned:
                    found = _partition(parts, rows, n_clusters)
            except OF_ONE_METHOD as error:
                refusals.append(error)
                continue
            agreement = of_rows(rows, devices.to_host(found.labels)).anmi
            if best is None or agreement > anmi[best[0]]:
                best = name, found, checks.sentences(warned)
            anmi[name] = agreement
        if best is None:
            raise refusals[0]
        name, found, said = best
        for sentence in said:
            checks.warn(sentence)
        others = [agreement for other, agreement in anmi.items() if other != name]
        found.found |= {"choice": name, "margin": anmi[name] - max(others, default=np.nan), "anmi": anmi}
        return found


def _partition(parts: Parts, rows: Rows, n_clusters: int) -> Partition:
    """Return the partition that a similarity and a partitioner give, and add the fitted similarity to its results."""
    if parts.similarity is None:
        return parts.partitioner(None, rows, n_clusters)
    similarity = parts.similarity(rows)
    found = parts.partitioner(similarity, rows, n_clusters)
    similarity.free_memory()
    found.found["similarity"] = similarity
    return found
