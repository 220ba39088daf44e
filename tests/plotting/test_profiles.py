"""The profile of clusters by features: means, standardised means, and typical objects, against plain sums."""

import numpy as np
import pandas as pd
import pytest

from gpuens import plotting
from gpuens.plotting.profiles import profile_of

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


def test_a_profile_has_means_and_typical_objects():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) + np.repeat([[0.0, 5.0, 0.0], [0.0, 0.0, 2.0]], 20, axis=0)
    X[3, 1] = np.nan
    labels = np.repeat([4, 7], 20)
    labels[39] = -1
    profile = profile_of(X, labels)
    kept = X[:39]
    assert profile.clusters.tolist() == [4, 7]
    assert profile.sizes.tolist() == [20, 19]
    for row, members in enumerate((kept[:20], kept[20:])):
        mean = np.nanmean(members, axis=0)
        np.testing.assert_allclose(profile.means[row], mean)
        z = (mean - np.nanmean(kept, axis=0)) / np.nanstd(kept, axis=0)
        np.testing.assert_allclose(profile.standardized[row], z)
        distance = np.nansum(((members - mean) / np.nanstd(kept, axis=0)) ** 2, axis=1)
        np.testing.assert_array_equal(profile.typical[row] - 20 * row, np.argsort(distance))
    assert profile.order[0] == 1
    assert profile.order[-1] == 0


def test_features_are_matched_by_name_and_drawn_in_order():
    features = pd.DataFrame({"noise": [1.0, 1.0, 1.0], "age": [9.0, 1.0, 1.0]}, index=["c", "b", "a"])
    ax = plotting.profile(features, pd.Series([0, 0, 1], index=["a", "b", "c"]))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["age", "noise"]
    assert ax.images[0].get_array()[:, 1].tolist() == [0, 0]
    assert ax.images[0].get_array()[0, 0] < 0 < ax.images[0].get_array()[1, 0]


@pytest.mark.parametrize(
    ("features", "more", "says"),
    [
        ([1.0, 2.0, 3.0], {}, "features have shape"),
        ([[1.0], [2.0]], {}, "labels must hold one value"),
        ([[1.0], [2.0], [3.0]], {"names": ["a", "b"]}, "names must hold one value"),
    ],
)
def test_other_features_are_refused(features, more, says):
    with pytest.raises(ValueError, match=says):
        plotting.profile(features, [0, 0, 1], **more)
