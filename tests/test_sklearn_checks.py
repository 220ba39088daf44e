"""scikit-learn's own checks of every public estimator."""

import pytest
from conftest import METHODS
from sklearn.utils.estimator_checks import parametrize_with_checks

FEATURES = "feeds feature values where cluster labels are needed; fractions are refused on purpose"
EXPECTED = {
    "check_clustering": FEATURES,
    "check_positive_only_tag_during_fit": FEATURES,
}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [method(n_clusters=2) for method in METHODS.values()], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
