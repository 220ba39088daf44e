"""scikit-learn's own checks of every public estimator."""

import pytest
from conftest import METHODS
from sklearn.utils.estimator_checks import parametrize_with_checks

FEATURES = "feeds feature values where cluster labels are needed; fractions are refused on purpose"
EXPECTED = {
    "check_clustering": FEATURES,
    "check_positive_only_tag_during_fit": FEATURES,
    "check_sample_weight_equivalence_on_dense_data": FEATURES,
}
# All other estimators consist of the same parts; so only their interface is checked.
FIRST = {"lwea", "lwgp", "kcc", "ecrmc"}
OF_THEIR_OWN = {
    "cgc", "em", "median", "pd", "voting", "scec", "lce", "mcla", "cspa", "oc-h", "s-cce", "pta", "limbo", "drec",
}  # fmt: skip


def all_checks(names, *, legacy, failing=False):
    """Return the parameters of all checks, with those that are expected to fail if they are asked for."""
    marked = parametrize_with_checks(
        [METHODS[name](n_clusters=2) for name in sorted(names)], legacy=legacy,
        expected_failed_checks=lambda estimator: EXPECTED,
    )  # fmt: skip
    arguments, checks = marked.args
    return pytest.mark.parametrize(
        arguments, [each for each in checks if failing or not getattr(each, "marks", ())], **marked.kwargs
    )


@pytest.mark.filterwarnings("ignore")
@all_checks(FIRST & METHODS.keys(), legacy=True, failing=True)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@all_checks(OF_THEIR_OWN & METHODS.keys(), legacy=True)
def test_scikit_learn_check_of_methods_of_their_own(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@all_checks(METHODS.keys() - FIRST, legacy=False)
def test_scikit_learn_check_of_the_interface(estimator, check):
    check(estimator)
