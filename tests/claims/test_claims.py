"""Every claim of the project, measured: `make test` holds the fast ones, `make test-all` all."""

import pytest

from claims import CLAIMS, Claim

TESTED = [
    pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.slow else [])
    for one in CLAIMS
    if not one.is_timed
]


@pytest.mark.parametrize("claim", TESTED)
def test_claim(claim: Claim):
    if claim.missing:
        pytest.skip(claim.missing)
    measured = claim.measure()
    assert claim.holds(measured), f"{claim.says}: {measured:g}, claimed {claim.bound}"


def test_claims_can_be_told_apart():
    assert len({one.name for one in CLAIMS}) == len(CLAIMS)
