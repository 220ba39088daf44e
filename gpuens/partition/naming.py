"""Plurality votes over names that all clusterings share, so that no clusters are matched.

The labels of a row are sorted, so that equal names are next to each other and form a run: its length is the number of
votes for the name. The time does not depend on the number of names.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.labels.vocabulary import name_codes
from gpuens.partition.base import Partition, Partitioner, shares_of
from gpuens.runtime import checks

BLOCK = 2**16  # largest number of rows that are counted together, so that their labels stay in the cache
TIES = ("unknown", "first", "error")


class VoteCounts(NamedTuple):
    """The votes for each row, arrays (G,), int64, in host memory."""

    first: np.ndarray  # code of the name with most votes; of tied names, the one that the first clustering gives; or -1
    winner_votes: np.ndarray  # votes for this name
    next_votes: np.ndarray  # votes for the next name, equal to `winner_votes` for a tie
    n_votes: np.ndarray  # votes for all names

    @property
    def tied(self) -> np.ndarray:
        return (self.next_votes == self.winner_votes) & (self.n_votes > 0)

    def chosen(self, ties: str) -> np.ndarray:
        """Return the code of each row's name, -1 for a row without votes and for a tie that is ``"unknown"``."""
        return np.where(self.tied, checks.MISSING, self.first) if ties == "unknown" else self.first


@dataclass(frozen=True, eq=False)
class NamedVotes(Partitioner):
    """Plurality votes over shared names, for rows of `gpuens.labels.vocabulary.with_one_vocabulary`.

    Rows without a name are a cluster of the partition. ``ties`` is the parameter of `gpuens.Voting`.
    """

    ties: str = "unknown"
    takes = ("labels",)
    gives_membership = True
    gives_names = True
    chooses_n_clusters = True

    def __post_init__(self) -> None:
        checks.check_choice(self.ties, "ties", TIES)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> Partition:
        names, votes = rows.ensemble.categories[0], count_votes(rows)
        tied, counts = votes.tied, rows.counts
        if self.ties == "error" and tied.any():
            refuse_tie(rows, int(tied.argmax()), int(counts[tied].sum()))
        results = {"n_ties": int(counts[tied].sum()), "n_unanswered": int(counts[votes.n_votes == 0].sum())}
        n_votes = np.maximum(votes.n_votes, 1)
        return partition_of_names(
            names,
            votes.chosen(self.ties),
            results,
            membership=partial(name_shares, len(names)),
            certainty={
                "confidence": votes.winner_votes / n_votes,
                "margin": (votes.winner_votes - votes.next_votes) / n_votes,
            },
        )


def partition_of_names(names: np.ndarray, row_codes: np.ndarray, results: dict[str, Any], **fields: Any) -> Partition:
    """Return the partition of rows by the codes (G,) of their names; rows without a name, of code -1, are a cluster."""
    # rows without a name get the largest number
    codes, labels = np.unique(np.where(row_codes < 0, len(names), row_codes), return_inverse=True)
    in_use = name_codes(names, np.where(codes == len(names), checks.MISSING, codes), "cpu")
    return Partition(labels, len(codes), results={"classes": names, **results}, names=in_use, **fields)


def refuse_tie(rows: Rows, g: int, n_objects: int) -> None:
    """Refuse tied votes, and show the tied names of row g."""
    row = rows.ensemble.take(np.array([g]))
    names_of_row = [
        categories[code]
        for categories, code in zip(row.categories, row.codes[0], strict=True)
        if code != row.missing_code
    ]
    n_votes = max(map(names_of_row.count, names_of_row))
    tied = [name for name in dict.fromkeys(names_of_row) if names_of_row.count(name) == n_votes]
    raise ValueError(
        f"ties='error', but the votes for {n_objects:,} object(s) are tied, for one of them between "
        f"{checks.listed(tied)}; take ties='unknown' or ties='first'."
    )


def count_votes(rows: Rows) -> VoteCounts:
    """Return the votes for the names of each row; missing labels have no vote. The host counts."""
    codes = rows.ensemble.codes
    parts = [_count_votes(codes[start : start + BLOCK]) for start in range(0, len(codes), BLOCK)]
    return VoteCounts(*map(np.concatenate, zip(*parts, strict=True)))


def _count_votes(codes: np.ndarray) -> VoteCounts:
    n_rows, n_clusterings = codes.shape
    missing = int(np.iinfo(codes.dtype).max)
    # a code and the place of its clustering in one number, so that a run begins with the first clustering of its name
    dtype = np.dtype(np.int32 if (missing + 1) * n_clusterings < 2**31 else np.int64)
    placed = codes.astype(dtype)
    placed *= n_clusterings
    placed += np.arange(n_clusterings, dtype=dtype)
    placed.sort(axis=1)
    columns = np.ascontiguousarray(placed.T)
    names, places = columns // n_clusterings, columns % n_clusterings
    winner, winner_votes, next_votes, n_votes, run, place = np.zeros((6, n_rows), dtype=np.int64)
    winner -= 1
    leading_place = np.full(n_rows, n_clusterings)  # the first clustering that gives the name with most votes
    for m in range(n_clusterings):
        begins = names[m] != names[m - 1] if m else np.ones(n_rows, dtype=bool)
        run = np.where(begins, 1, run + 1)
        place = np.where(begins, places[m], place)
        ends = names[m] != names[m + 1] if m + 1 < n_clusterings else np.ones(n_rows, dtype=bool)
        votes = np.where(ends & (names[m] != missing), run, 0)
        better = (votes > winner_votes) | ((votes == winner_votes) & (votes > 0) & (place < leading_place))
        next_votes = np.maximum(next_votes, np.minimum(winner_votes, votes))
        winner_votes = np.maximum(winner_votes, votes)
        winner, leading_place = np.where(better, names[m], winner), np.where(better, place, leading_place)
        n_votes += votes
    return VoteCounts(winner, winner_votes, next_votes, n_votes)


def name_shares(n_names: int, rows: Rows) -> np.ndarray:
    """Return the share of votes for each name, for each row, (G, k), host; rows without votes get equal shares."""
    codes = rows.ensemble.codes
    votes = np.zeros((len(rows), n_names + 1))  # the last column takes the missing labels
    row_numbers = np.arange(len(rows))
    for m in range(rows.n_clusterings):
        votes[row_numbers, np.minimum(codes[:, m], n_names)] += 1.0
    return shares_of(votes[:, :n_names])
