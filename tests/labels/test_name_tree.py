"""Names in a tree compared with a walk from each name to the roots."""

import numpy as np
import pandas as pd
import pytest
from conftest import refused

import gpuens as ge

PARENTS = {
    "CD4": "T cell",
    "CD8": "T cell",
    "T cell": "lymphocyte",
    "B cell": "lymphocyte",
    "NK": "lymphocyte",
    "Mono": "myeloid",
    "lymphocyte": "cell",
    "myeloid": "cell",
}
NAMES = ["CD4", "CD8", "T cell", "B cell", "NK", "Mono", None]


def to_root(name):
    return [name, *to_root(PARENTS[name])] if name in PARENTS else [name]


def literal_name(votes, quorum):
    """Return the deepest name that enough votes support, and its support."""
    votes = [vote for vote in votes if vote is not None]
    nodes = {node for vote in votes for node in to_root(vote)}
    supports = {node: sum(node in to_root(vote) for vote in votes) / len(votes) for node in nodes}
    eligible = [node for node in nodes - {"cell"} if supports[node] > 0.5 and supports[node] >= quorum - 1e-12]
    best = max(eligible, key=lambda node: len(to_root(node)), default="Unknown")
    return best, supports.get(best, 0.0)


@pytest.mark.parametrize("quorum", [0.5, 0.6, 0.75, 1.0])
def test_names_are_those_of_a_walk_to_the_root(quorum, where):
    answers = np.random.default_rng(0).choice(np.array(NAMES, dtype=object), size=(300, 5))
    answers[7] = None
    vote = ge.Voting(vocabulary="shared", device=where).fit(list(answers.T))
    names = vote.labels_in_tree(PARENTS, quorum=quorum)
    expected = [literal_name(row, quorum) for row in answers.tolist()]
    assert names.labels.tolist() == [name for name, _ in expected]
    np.testing.assert_allclose(names.support, [support for _, support in expected], atol=1e-12)
    depths = [0 if name == "Unknown" else len(to_root(name)) - 1 for name, _ in expected]
    assert names.depth.tolist() == depths


def test_tables_ontologies_and_probabilities():
    answers = [["CD4", "NK T"], ["CD8", "NK"], ["CD8", "NK T"]]
    table = pd.DataFrame([*PARENTS.items(), ("NK T", "T cell"), ("NK T", "NK")], columns=["child", "parent"])
    vote = ge.Voting(vocabulary="shared").fit(answers, wide=True)
    assert vote.labels_in_tree(table).labels.tolist() == ["CD8", "NK T"]
    assert vote.labels_in_tree(table, quorum=1.0).labels.tolist() == ["T cell", "NK"]
    titled = table.assign(source="CL")[["source", "parent", "child"]]
    assert vote.labels_in_tree(titled).labels.tolist() == ["CD8", "NK T"]
    model = ge.EM(vocabulary="shared").fit(answers, wide=True)
    names = model.labels_in_tree(table)
    assert names.labels.tolist() == ["CD8", "NK T"]
    assert names.support[0] == pytest.approx(model.membership_[0, model.classes_.tolist().index("CD8")])


def test_refusals():
    vote = ge.Voting(vocabulary="shared").fit([["a", "b"], ["a", "b"]])
    refused(lambda: vote.labels_in_tree({"a": "root"}), ValueError, "tree lacks 1 name", "'b'", "add a line")
    refused(lambda: vote.labels_in_tree({"a": "b", "b": "a"}), ValueError, "circle", "a below b below a")
    refused(lambda: vote.labels_in_tree(["a"]), TypeError, "child to parent")
    refused(lambda: vote.labels_in_tree({"a": "r", "b": "r"}, quorum=0.4), ValueError, "quorum")
    refused(lambda: ge.Voting(2).fit([[0, 1], [0, 1]]).labels_in_tree({}), AttributeError, "labels_in_tree")
