"""A consensus that evidence refuses."""

import pytest
from conftest import refused

import gpuens as ge


@pytest.mark.parametrize(
    ("consensus", "sentence"),
    [
        ([0, 1], "consensus must hold one value for each of the 4 row(s), but have shape (2,)."),
        ([0, 1, -1, None], "consensus has 2 object(s) without a label"),
        ([[0, 1], [2, 3]], "consensus"),
    ],
)
@pytest.mark.parametrize("function", [ge.evidence.objects, ge.evidence.agreement])
def test_bad_consensus_is_refused(function, consensus, sentence):
    refused(lambda: function([[0, 0, 1, 1], [0, 1, 1, 1]], consensus), ValueError, sentence)
