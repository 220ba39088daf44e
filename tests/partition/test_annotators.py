"""Dawid & Skene's model compared with loops over objects, annotators and names."""

import math

import numpy as np
import pandas as pd
import pytest
from conftest import refused

import gpuens as ge
from gpuens.partition.annotators import ANSWERS_FOR_A_NAME, ANSWERS_FOR_A_SKILL

NAMES = ["B cell", "NK", "T cell"]


def simulate(n_objects, skills, n_names=3, *, share_answered=1.0, shares=None, seed=0):
    """Return answers (n_objects, M) as numbers, -1 for none, and the true names (n_objects,).

    An annotator gives the true name with the probability of her skill, and otherwise any other name.
    """
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_names, n_objects, p=shares)
    wrong = (truth[:, None] + rng.integers(1, n_names, size=(n_objects, len(skills)))) % n_names
    answers = np.where(rng.random(wrong.shape) < skills, truth[:, None], wrong)
    answers[rng.random(wrong.shape) >= share_answered] = -1
    return answers, truth


def as_lists(answers, names=NAMES):
    return [[names[answer] if answer >= 0 else None for answer in column] for column in answers.T]


def as_frame(answers, names=NAMES):
    objects, annotators = np.nonzero(answers >= 0)
    labels = [names[answer] for answer in answers[objects, annotators]]
    return pd.DataFrame({"task": objects, "worker": [f"w{m}" for m in annotators], "label": labels})


def literal_model(answers, k, n_iter):
    """Return the probabilities (N, k), the confusions (M, k, k) and the proportions after ``n_iter`` iterations."""
    q = [[1 / k] * k for _ in answers]
    for g, row in enumerate(answers):
        votes = [answer for answer in row if answer >= 0]
        if votes:
            q[g] = [votes.count(c) / len(votes) for c in range(k)]
    for _ in range(n_iter):
        counts = [[[0.0] * k for _ in range(k)] for _ in answers[0]]  # annotator, true name, answer
        for g, row in enumerate(answers):
            for m, answer in enumerate(row):
                for c in range(k) if answer >= 0 else ():
                    counts[m][c][answer] += q[g][c]
        right = [sum(matrix[c][c] for c in range(k)) for matrix in counts]
        total = [sum(map(sum, matrix)) for matrix in counts]
        of_all = (sum(right) + 1) / (sum(total) + 2)
        theta = []
        for matrix, hits, n in zip(counts, right, total, strict=True):
            skill = (hits + ANSWERS_FOR_A_SKILL * of_all) / (n + ANSWERS_FOR_A_SKILL)
            expected = [[skill if a == c else (1 - skill) / (k - 1) for a in range(k)] for c in range(k)]
            sums = [[matrix[c][a] + ANSWERS_FOR_A_NAME * expected[c][a] for a in range(k)] for c in range(k)]
            theta.append([[value / sum(row) for value in row] for row in sums])
        pi = [(sum(row[c] for row in q) + 1) / (len(q) + k) for c in range(k)]
        for g, row in enumerate(answers):
            logs = [
                math.log(pi[c]) + sum(math.log(theta[m][c][a]) for m, a in enumerate(row) if a >= 0) for c in range(k)
            ]
            powers = [math.exp(value - max(logs)) for value in logs]
            q[g] = [power / sum(powers) for power in powers]
    return np.array(q), np.array(theta), np.array(pi)


@pytest.mark.parametrize("n_iter", [1, 2, 5])
def test_model_is_the_literal_one(n_iter, where):
    answers, _ = simulate(80, [0.9, 0.7, 0.4, 0.6], share_answered=0.7, seed=n_iter)
    answers[3] = -1
    est = ge.EM(vocabulary="shared", max_iter=n_iter, tol=0.0, device=where).fit(as_lists(answers))
    q, theta, pi = literal_model(answers.tolist(), 3, n_iter)
    np.testing.assert_allclose(est.membership_, q, atol=1e-9)
    np.testing.assert_allclose(est.confusions_, theta, atol=1e-12)
    np.testing.assert_allclose(est.proportions_, pi, atol=1e-12)
    answered = (answers >= 0).any(axis=1)
    labels = np.where(answered, np.array(NAMES, dtype=object)[q.argmax(axis=1)], "Unknown")
    assert est.labels_.tolist() == labels.tolist()
    np.testing.assert_allclose(est.confidence_, np.where(answered, q.max(axis=1), 0.0), atol=1e-9)
    assert est.n_unanswered_ == (~answered).sum()
    skill = (np.diagonal(theta, axis1=1, axis2=2) * pi).sum(axis=1)
    np.testing.assert_allclose(est.skills_["skill"], skill, atol=1e-12)
    assert est.skills_["answers"].tolist() == (answers >= 0).sum(axis=0).tolist()


def test_answers_in_long_form_give_the_same_bits():
    answers, _ = simulate(300, [0.9, 0.8, 0.5, 0.4, 0.7, 0.6], share_answered=0.5, seed=1)
    frame = as_frame(answers)
    in_lines, in_a_matrix = ge.Answers(frame), ge.Ensemble.from_long(frame)
    assert list(in_lines.index) == list(in_a_matrix.index)
    in_long_form, in_a_matrix = (ge.EM(vocabulary="shared").fit(labels) for labels in (in_lines, in_a_matrix))
    for name in ("labels_", "membership_", "confusions_", "proportions_", "n_iter_", "n_unanswered_"):
        np.testing.assert_array_equal(getattr(in_long_form, name), getattr(in_a_matrix, name))
    assert in_long_form.skills_.equals(in_a_matrix.skills_)


def test_order_of_objects_does_not_matter_and_weights_are_copies():
    answers, _ = simulate(200, [0.9, 0.6, 0.5, 0.7], share_answered=0.8, seed=2)
    order = np.random.default_rng(0).permutation(len(answers))
    copies = np.random.default_rng(1).integers(1, 4, size=len(answers))
    est = ge.EM(vocabulary="shared").fit(as_lists(answers))
    shuffled = ge.EM(vocabulary="shared").fit(as_lists(answers[order]))
    np.testing.assert_array_equal(est.membership_[order], shuffled.membership_)
    np.testing.assert_array_equal(est.predict(as_lists(answers)), est.labels_)
    repeated = ge.EM(vocabulary="shared").fit(as_lists(np.repeat(answers, copies, axis=0)))
    weighted = ge.EM(vocabulary="shared").fit(as_lists(answers), sample_weight=copies)
    assert weighted.skills_.equals(repeated.skills_)
    np.testing.assert_array_equal(np.repeat(weighted.membership_, copies, axis=0), repeated.membership_)


@pytest.mark.parametrize("seed", range(3))
def test_skilled_annotators_outweigh_guessing_ones(seed):
    names, skills = [f"name {c}" for c in range(5)], [0.9] * 3 + [0.2] * 8
    answers, truth = simulate(1000, skills, 5, seed=seed)
    right = np.array(names, dtype=object)[truth]
    est = ge.EM(vocabulary="shared").fit(as_lists(answers, names))
    vote = ge.Voting(vocabulary="shared", ties="first").fit(as_lists(answers, names))
    assert (vote.labels_ == right).mean() < 0.85
    assert (est.labels_ == right).mean() > 0.95
    intervals = est.skills_
    assert (intervals["low"].le(skills) & intervals["high"].ge(skills)).sum() >= 9
    assert (intervals["high"] - intervals["low"]).between(0.01, 0.08).all()


def test_annotators_of_few_answers_are_judged_like_the_others():
    skills = np.where(np.random.default_rng(0).random(1000) < 0.3, 0.34, 0.85)
    answers, truth = simulate(2000, skills, share_answered=0.005, seed=4)
    labelled = (answers >= 0).any(axis=1)
    answers = answers[labelled][:, (answers >= 0).any(axis=0)]
    right = np.array(NAMES, dtype=object)[truth[labelled]]
    est = ge.EM(vocabulary="shared").fit(ge.Answers(as_frame(answers)))
    vote = ge.Voting(vocabulary="shared", ties="first").fit(as_lists(answers))
    assert (est.labels_ == right).mean() > (vote.labels_ == right).mean() + 0.03


def test_rare_names_are_kept():
    answers, truth = simulate(4000, [0.8] * 7, 4, shares=[0.9, 0.06, 0.03, 0.01], seed=5)
    est = ge.EM(vocabulary="shared").fit(as_lists(answers, "abcd"))
    assert (est.labels_[truth == 3] == "d").mean() > 0.8


def test_names_that_are_numbers_and_a_single_name(where):
    est = ge.EM(vocabulary="shared", device=where).fit([[3, 7, 7, 3], [3, 7, 3, 3], [3, 7, 7, 3]])
    assert est.classes_.tolist() == [3, 7]
    assert np.asarray(est.labels_).tolist() == [3, 7, 7, 3]
    assert np.asarray(est.predict([[7, 3], [7, 3], [7, 9]])).tolist() == [7, 3]
    assert est.agreement_.with_consensus.shape == (3, 2)
    alone = ge.EM(vocabulary="shared", device=where).fit([["a", "a"], ["a", None]])
    assert alone.labels_.tolist() == ["a", "a"]
    assert alone.skills_["skill"].tolist() == [1.0, 1.0]


FRAME = as_frame(simulate(20, [0.9, 0.8])[0])
SHARED = ge.EM(vocabulary="shared")


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ge.EM(3, vocabulary="shared").fit([["a", "b"]]), ValueError, ["n_clusters=3", "of no use"]),
        (lambda: ge.EM(n_init=3, vocabulary="shared").fit([["a", "b"]]), ValueError, ["n_init=3", "of no use"]),
        (lambda: ge.EM(vocabulary="common").fit([["a", "b"]]), ValueError, ["vocabulary must be one of"]),
        (lambda: ge.EM().fit(ge.Answers(FRAME)), TypeError, ["EM(vocabulary='shared')"]),
        (lambda: SHARED.fit(ge.Answers(FRAME), sample_weight=[1]), TypeError, ["leave it out"]),
        (lambda: SHARED.fit(ge.Answers(FRAME)).evidence(), TypeError, ["answers in long form"]),
        (lambda: SHARED.fit(ge.Answers(FRAME)).predict([[0]]), TypeError, ["answers in long form"]),
        (lambda: ge.Answers(FRAME.drop(columns="label")), ValueError, ["a long table has a column"]),
        (lambda: ge.Answers([[0, 1]]), TypeError, ["frame must be a DataFrame"]),
        (lambda: ge.Answers(FRAME.assign(label="unknown")), ValueError, ["hold no answer"]),
        (lambda: ge.Answers(pd.concat([FRAME, FRAME.assign(label="NK")])), ValueError, ["two answers", "leave one"]),
        (lambda: ge.Answers(FRAME.assign(worker=None)), ValueError, ["no clustering in row 0"]),
    ],
)
def test_refusals(call, kind, words):
    refused(call, kind, *words)


def test_equal_lines_count_once():
    once, twice = (ge.Answers(frame) for frame in (FRAME, pd.concat([FRAME, FRAME])))
    assert (once.matrix != twice.matrix).nnz == 0
    assert repr(once) == "Answers(n_objects=20, n_annotators=2, n_answers=40, n_names=3)"
