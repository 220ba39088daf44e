"""The glossary of report pages: explanations of words, shown as hints in the text and in a list at the end.

The glossary of the site (docs/glossary.md) has these words, too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuens.report.sureness import IN_DOUBT, LEAST_CONSENSUS, SURE

WORDS = {
    "ANMI": (
        "Average NMI of the result with the base clusterings: how well the result represents them, not whether it is "
        "true."
    ),
    "agreement": "How alike two clusterings are, from 0 (as if by chance, or no better) to 1 (the same).",
    "base clustering": "One of the given clusterings: a column of labels, made by one method, run or owner.",
    "C": (
        "The consensus matrix: the share of the base clusterings that put two objects together; 0 and 1 are certain. "
        "Clusterings that do not label both objects count, or, with missing=ignore, do not. The matrix of all pairs is "
        "never stored."
    ),
    "ARI": (
        "Adjusted Rand index of two clusterings, from the pairs of objects that both treat equally: 1 if the "
        "clusterings are the same, and 0 on average by chance."
    ),
    "CA-tree": (
        "A tree of groups of objects whose labels are nearly equal, clustered in place of the objects: faster, but not "
        "exact."
    ),
    "certainty": (
        "The support of the clusterings for an object's cluster, from 0 to 1. On data with known classes and the right "
        "number of clusters, it is the share of right labels, on average over data sets. Your data can be far "
        "from it, because clusterings that share a mistake support it like the truth. Of names by vote, it is the "
        "share of the votes."
    ),
    "coherence": (
        "The joins of a clustering beyond chance: 1 if all neighbours have the same label, near 0 if the labels have "
        "nothing to do with the places."
    ),
    "confidence": (
        "The support of the clusterings for an object's cluster rather than for others, from 0 to 1. It orders objects "
        "by their risk of being wrong; it is not a probability of being right."
    ),
    "consensus": (
        "The one clustering that the base clusterings support together: a label for each object; of a cluster, the "
        "mean C of its pairs of objects."
    ),
    "core group": (
        "The objects that have equal labels in every base clustering. They always stay together, so that one row with "
        "a count represents them; G is the number of these rows."
    ),
    "corrected PAC": "PAC as a multiple of that of independent clusterings; below 1 is better than chance.",
    "delta area": "How much the area under the distribution of C grows with one more cluster.",
    "ECS": (
        "Element-centric similarity of two clusterings, from 0 to 1: the overlap of an object's two clusters as a "
        "share of the larger one, on average over the objects."
    ),
    "IC": (
        "Inconsistency of the base clusterings, 1 divided by the mean ECS of any two of them: 1 if all are the same, "
        "more the less they agree."
    ),
    "fairly sure": "An object that is neither sure nor in doubt.",
    "in doubt": (
        f"An object is in doubt if its certainty is below {IN_DOUBT:g}, or if the clusterings put it together with "
        "another cluster at least as often as with its own. A number of clusters is in doubt if others suit about as "
        "well."
    ),
    "item consensus": "The mean C of an object and the other members of its cluster.",
    "Jaccard index": "The objects that two clusters share, as a share of those in either.",
    "join": "An edge between neighbours with the same label; the joins of a clustering are their share of all edges.",
    "lifetime": "The range of distances at which a tree has this number of clusters: a number that lasts is supported.",
    "margin": (
        "An object's item consensus less its mean C with the members of the next cluster; at 0 or below, it is as "
        "near to another cluster."
    ),
    "medoid": "The member of a mode that agrees best with the other members.",
    "mode": "A group of base clusterings that agree, and that are apart from the others: one of several stories.",
    "NMI": (
        "Normalised mutual information of two clusterings, from 0 (independent) to 1 (the same): the information that "
        "one gives about the other, divided by the geometric mean of their entropies, unless another mean is named."
    ),
    "PAC": (
        "Proportion of ambiguous clustering: the share of the pairs of objects that some clusterings put together and "
        "others apart (C above .1 and at most .9). Small is good, but PAC also falls with the number of clusters in "
        "data without clusters."
    ),
    "RCSI": "PAC beside that of reference data without clusters, as a logarithm; large is good.",
    "S": "Correspondence: how far a cluster of a base clustering stands for each cluster of the result.",
    "silhouette": (
        "By how much an object is nearer to its own cluster than to the next, from -1 to 1, where 1 - C is the "
        "distance."
    ),
    "stability": (
        "The Jaccard index of a cluster with the most similar cluster of a base clustering, on average over them; 1 "
        "if all have it."
    ),
    "score": (
        "The logarithm of the support plus the nearness: large for a number that suits the groups that the clusterings "
        "share, and their own numbers of clusters."
    ),
    "support": "How much of a number of clusters stands out in what the base clusterings share; large is good.",
    "sure": (
        f"An object with a certainty of {SURE:g} or more, in a cluster with a consensus of {LEAST_CONSENSUS:g} or "
        "more; on data with known classes, 19 of 20 such objects are right. Clusterings that share a mistake are as "
        "sure of it as of the truth."
    ),
    "VI": "Variation of information of two clusterings, in bits: 0 if they are the same, more the less they agree.",
}
# regular expressions for the words and their plurals; case is ignored here, but `_match_word` checks abbreviations
_ANY = "|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True))
_MET = re.compile(rf"(?<![\w-])(?:{_ANY})s?(?![\w-])", re.IGNORECASE)
_NAMES = {word.lower(): word for word in WORDS}


@dataclass
class Glossary:
    """A finder of glossary words in the texts of a page; ``words`` are those of all texts so far."""

    words: set[str] = field(default_factory=set)

    def __call__(self, text: str) -> list[tuple[str, str | None]]:
        """Split a text into parts; return a list of (part, glossary word), with None for parts that are no such word.

        Only the first occurrence of each word in the text is marked.
        """
        parts: list[tuple[str, str | None]] = []
        marked, end = set(), 0
        for match in _MET.finditer(text):
            word = _match_word(match[0])
            if word is None or word in marked:
                continue
            marked.add(word)
            parts += [(text[end : match.start()], None), (match[0], word)]
            end = match.end()
        self.words |= marked
        return [*parts, (text[end:], None)]

    def meaning(self, word: str) -> str:
        return WORDS[word]

    def entries(self) -> Iterable[tuple[str, str]]:
        """Return the glossary words that the page uses and their explanations, in alphabetical order."""
        return [(word, WORDS[word]) for word in sorted(self.words, key=str.lower)]


def _match_word(text: str) -> str | None:
    """Return the glossary word for a text in the singular or plural; None if it is no word of the glossary.

    An abbreviation must be in capital letters.
    """
    for spelled in (text, text[:-1]):
        word = _NAMES.get(spelled.lower())
        if word is not None:
            return word if spelled == word or not word.isupper() else None
    return None
