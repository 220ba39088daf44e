"""Methods of two vocabularies: each clustering names clusters in its own way, or all take names from one list."""

import os
from typing import Any, ClassVar, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuens.evidence import Annotators, Evidence, NewObjects
from gpuens.evidence.annotators import compare_annotators
from gpuens.labels.encoding import find_values
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.name_tree import QUORUM, NamesInTree, NameTree
from gpuens.labels.rows import Rows
from gpuens.labels.vocabulary import NO_ANSWER, UNKNOWN, answer_words, ensemble_of_names, name_codes
from gpuens.methods.base import Seeded
from gpuens.methods.fit import Fit
from gpuens.methods.parts import Parts
from gpuens.partition import Partition
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array


class SharedNames(Seeded):
    """A method that clusters, or, for a shared vocabulary, finds the right one of the names of each object.

    Parameters
    ----------
    vocabulary : {"own", "shared"}
        "own": each clustering names its clusters in its own way, so that clusters are matched. "shared": equal names
        are equal answers, and the labels of the consensus are names.
    no_answer : str or list of str
        For a shared vocabulary, words for no answer, in any capitals: a list, or a text with commas between the words.
        They are missing labels, as are empty texts.
    """

    vocabulary: str = "own"
    no_answer: str | list[str] = NO_ANSWER
    useless_with_names: ClassVar[tuple[str, ...]] = ()  # parameters of use for an own vocabulary only

    @property
    def _shares_names(self) -> bool:
        checks.check_choice(self.vocabulary, "vocabulary", ("own", "shared"))
        return self.vocabulary == "shared"

    def checked_parts(self) -> Parts:
        parts = super().checked_parts()
        if self._shares_names:
            answer_words(self.no_answer)
            for name in ("n_clusters", *self.useless_with_names):
                if (value := getattr(self, name)) != getattr(type(self), name):
                    raise ValueError(
                        f"{name}={checks.shown(value)} is of no use with vocabulary='shared', where names are "
                        "clusters; leave it out."
                    )
            if parts.reduction is not None:
                raise ValueError(
                    "reduction is of no use with vocabulary='shared', which takes linear time; leave it out."
                )
        return parts

    def _ensemble_of(self, X: Any, wide: bool) -> Ensemble:
        if not self._shares_names:
            return super()._ensemble_of(X, wide)
        return ensemble_of_names(X, self.no_answer, wide=wide)

    def take_fit(self, fit: Fit, ensemble: Any) -> None:
        super().take_fit(fit, ensemble)
        self._agreement: Annotators | None = None
        names = fit.partition.names
        if names is not None:
            kind = devices.home_of(self.labels_)
            self.labels_ = names[devices.to_host(self.labels_)]
            if self.labels_.dtype != object:
                self.labels_ = devices.give_back(self.labels_, kind)
            self.n_clusters_ = int(np.isin(names, self.classes_).sum())

    def _codes_of_names(self, rows: Rows) -> np.ndarray:
        """Return the code (G,) of the name of each row, by the names and annotators of the fit; -1 for no name."""
        raise NotImplementedError

    def predict(self, X: Any) -> Array:
        """Return the label of each object of a label matrix (n_objects, n_clusterings), with the clusterings of fit.

        For a shared vocabulary, the label is one of the names known from fit; otherwise, see `Consensus`.
        """
        if not self._shares_names:
            return super().predict(X)
        check_is_fitted(self, "labels_")
        self.fit_.refuse_soft("predict takes labels")
        ensemble, _ = self.reduction_.ensemble.encoded_in_part(X)
        codes = self._codes_of_names(Rows(ensemble, device=devices.resolve(self.device, ensemble.device_kind)))
        return name_codes(self.classes_, codes, ensemble.device_kind)

    @overload
    def evidence(self, X: None = None, *, missing: str | None = None) -> Evidence: ...

    @overload
    def evidence(self, X: Any, *, missing: str | None = None) -> NewObjects: ...

    def evidence(self, X: Any = None, *, missing: str | None = None) -> Evidence | NewObjects:
        """Return the evidence of the clusterings for the labels, see `Consensus.evidence`.

        For a shared vocabulary, confidence and margin of the objects are those of the method: the share of votes or
        probability of the name, and its lead before the next name. Objects without a name are a cluster. ``X`` is not
        for a shared vocabulary.
        """
        if X is not None and self._shares_names:
            raise TypeError("X is of no use with vocabulary='shared'; predict or fit the new ones.")
        return super().evidence(X, missing=missing)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, see `Consensus.save`; a shared vocabulary is refused."""
        if self._shares_names:
            raise TypeError(
                "save is of no use with vocabulary='shared', as votes need no model; predict or fit the new objects."
            )
        super().save(path)

    @property
    def cluster_names_(self) -> np.ndarray:
        names = self._partition_of_names("cluster_names_").names
        assert names is not None
        return names

    @property
    def agreement_(self) -> Annotators:
        partition = self._partition_of_names("agreement_")
        if self._agreement is None:
            positions = find_values(self.cluster_names_, self.classes_)
            self._agreement = compare_annotators(self.reduction_.rows, positions[partition.labels])
        return self._agreement

    def labels_in_tree(self, tree: Any, *, quorum: float = QUORUM) -> NamesInTree:
        """Return the deepest name of a tree that enough votes support, for each object of a fit with shared names.

        A vote for a name also supports all names above it: three votes for "CD4 T cell", "CD8 T cell" and "T cell" are
        three for "T cell". Probabilities of `gpuens.EM` count like shares of votes.

        Parameters
        ----------
        tree : dict, or DataFrame
            Child → parent, for all names of the answers. A name may have several parents, as in a cell ontology. A
            DataFrame has columns "child" and "parent"; without these titles, they are its first two columns.
        quorum : float
            The least support, from 0.5 to 1; it must also be more than half, so that names in separate branches cannot
            both have it.

        Returns
        -------
        NamesInTree
            ``labels`` (n_objects,), "Unknown" for objects without an answer and where only a root has the quorum, with
            their ``support`` and ``depth``.

        Raises
        ------
        ValueError, TypeError
            For a tree that lacks names of the answers or runs in a circle.

        Examples
        --------
        >>> import gpuens as ge
        >>> vote = ge.Voting(vocabulary="shared").fit([["CD4", "CD4", "B"], ["CD8", "CD4", "CD8"], ["T", "CD4", None]])
        >>> names = vote.labels_in_tree({"CD4": "T", "CD8": "T", "T": "cell", "B": "cell"})
        >>> names.labels.tolist(), names.support.tolist()
        (['T', 'CD4', 'Unknown'], [1.0, 1.0, 0.0])
        """
        partition = self._partition_of_names("labels_in_tree")
        quorum = checks.check_between(quorum, "quorum", QUORUM, 1.0)
        nodes = NameTree(tree, [str(name) for name in self.classes_.tolist()])
        assert partition.membership is not None
        assert partition.certainty is not None
        numbers, support = nodes.deepest(partition.membership(self.reduction_.rows), quorum)
        has_name = (numbers >= 0) & (partition.certainty["confidence"] > 0)
        names = np.array([*nodes.nodes, UNKNOWN], dtype=object)
        support, depth = np.where(has_name, support, 0.0), np.where(has_name, nodes.depths[numbers], 0)
        row_of = devices.to_host(self.reduction_.row_of)
        return NamesInTree(names[np.where(has_name, numbers, -1)][row_of], support[row_of], depth[row_of])

    def _partition_of_names(self, name: str) -> Partition:
        """Return the partition of a fit with a shared vocabulary."""
        if not hasattr(self, "fit_") or self.fit_.partition.names is None:
            raise AttributeError(
                f"this {type(self).__name__} has no {name}, which a fit with vocabulary='shared' gives."
            )
        return self.fit_.partition
