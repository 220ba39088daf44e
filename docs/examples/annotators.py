"""
Annotators who use the same names
=================================

Six programs read the same handwritten digits. Each has learned from a few examples of its own, and sees only a part of
each picture. Their answers are names from one list, so clusters need no matching: each digit gets the name with most
votes. The votes also show the weak side of each program, and which names are too uncertain to keep.
"""

# %%
# Every program gives a name to every digit, or answers "unsure". The true names only serve to judge the result.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import gpuens as ge

names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"], dtype=object)
pixels, digit = load_digits(return_X_y=True)
learned, read = np.arange(400), np.arange(400, len(digit))
rng = np.random.default_rng(0)
answers = {}
for program in "ABCDEF":
    examples, seen = rng.choice(learned, 60, replace=False), rng.choice(64, 20, replace=False)
    reader = KNeighborsClassifier(3).fit(pixels[examples][:, seen], names[digit[examples]])
    shares = reader.predict_proba(pixels[read][:, seen])
    answers[program] = np.where(shares.max(axis=1) > 0.5, reader.classes_[shares.argmax(axis=1)], "unsure")
answers, truth = pd.DataFrame(answers), names[digit[read]]
print(answers.head(4).to_string())

# %%
# "unsure" is one of the words for no answer. A tie of names is "Unknown" here; ``ties="first"`` would let the first
# program decide.

vote = ge.Voting(vocabulary="shared").fit(answers)
known = vote.labels_ != "Unknown"
single = {program: (own[own != "unsure"] == truth[own != "unsure"]).mean() for program, own in answers.items()}
right = (vote.labels_ == truth)[known].mean()
print(f"ties: {vote.n_ties_}, without an answer: {vote.n_unanswered_}, of {len(truth)} digits")
print(
    f"right: {right:.2f} of the named digits; single programs {min(single.values()):.2f} to {max(single.values()):.2f}"
)

# %%
# Left: the share of each program's votes for a name that are the consensus. It needs no truth, and shows the names that
# a program gives too freely. Right: a name with few votes is often wrong. With a least confidence, fewer digits have a
# name, and more of the names are right.

agreement = vote.agreement_
least = np.linspace(0, 1, 21)
kept = [vote.confident_labels(value) for value in least]
named = np.array([(labels != "Unknown").mean() for labels in kept])
accuracy = np.array([(labels == truth)[labels != "Unknown"].mean() for labels in kept])

fig, (left, right_panel) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
order = [agreement.classes.tolist().index(name) for name in names]  # 0 to 9 in place of the alphabet
shares = agreement.with_consensus[:, order]
image = left.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
left.set_xticks(range(len(names)), names, rotation=45)
left.set_yticks(range(len(agreement.annotators)), agreement.annotators)
for (m, c), share in np.ndenumerate(shares):
    left.text(c, m, f"{share:.0%}", ha="center", va="center", fontsize=8, color="w" if share > 0.6 else "k")
left.set(title="Votes that are the consensus", ylabel="program")
fig.colorbar(image, ax=left, label="share")
right_panel.plot(least, accuracy, marker="o", markersize=3, label="right, of the named digits")
right_panel.plot(least, named, marker="s", markersize=3, label="named, of all digits")
right_panel.set(title="A least confidence", xlabel="least share of votes", ylim=(0, 1.05))
right_panel.legend(loc="lower left")

# %%
# Two programs agree on a name if both give it to the same digits (specific agreement). For each name, the least
# agreeing pair:

pairs = np.triu_indices(len(agreement.annotators), 1)
for c, name in zip(order, names, strict=True):
    between = agreement.between[..., c][pairs]
    first, second = (agreement.annotators[places[between.argmin()]] for places in pairs)
    print(f"{name}: mean {between.mean():.2f}, least {between.min():.2f} ({first} and {second})")
