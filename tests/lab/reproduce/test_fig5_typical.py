"""Accuracy with typical lenses: what is said about the order of methods, and real small planes."""

import pytest

from d3s.errors import InputError
from d3s.lab.evaluate import SweepTable
from d3s.lab.reproduce import fig5_typical
from d3s.lab.reproduce.fig5_typical import ITEM, make_typical
from d3s.lab.reproduce.item import Context
from d3s.lab.reproduce.protocol import ACCURACY_THRESHOLD, OTHERS, TUNED
from d3s.lab.reproduce.run import find_items, reproduce
from made_results import row

DEPTHS_M = (0.25, 0.6, 1.1, 1.63, 1.97)


def rows_of(errors_m):
    """Rows of planes with the error of each method at all depths; the consensus has 5 mm."""
    every = {TUNED.name: 0.005} | {one.name: errors_m.get(one.name, 0.02) for one in OTHERS}
    return SweepTable(
        row(name, z, error_m, threshold=ACCURACY_THRESHOLD if name == TUNED.name else None)
        for name, error_m in every.items()
        for z in DEPTHS_M
    )


@pytest.fixture
def make(monkeypatch, tmp_path):
    def made(**errors_m):
        monkeypatch.setattr(fig5_typical, "_measure", lambda context, lens: rows_of(errors_m))
        return make_typical(Context(folder=tmp_path, quick=True))

    return made


def test_the_order_comes_back_if_every_rival_is_behind(make):
    result = make()
    assert all(one.agrees for one in result.comparisons)
    assert "comes back: the consensus is ahead of all four" in result.remarks[0]
    assert result.comparisons[-1].ours.startswith("guo2017 4, li2010 4, takeda2013 4, sift 4; ")


def test_rivals_that_are_ahead_are_named(make):
    result = make(li2010=0.001, takeda2013=0.002)
    assert "does not come back: li2010, takeda2013 are not behind" in result.remarks[0]
    agrees = {one.what: one.agrees for one in result.comparisons}
    assert not agrees["li2010 against the consensus, with typical lenses"]
    assert agrees["sift against the consensus, with typical lenses"]
    assert not result.comparisons[-1].agrees
    assert "li2010 0.2" in result.comparisons[-1].ours
    (lenses,) = (one.rows for one in result.tables if one.name == "lenses")
    first = lenses[0]
    assert (first["method"], first["typical_range"]) == ("li2010", "0.25 to 1.97 m")
    assert first["typical_mae_cm"] == first["perfect_mae_cm"] == pytest.approx(0.1)


def test_it_is_made_only_when_typical_lenses_are_asked_for(tmp_path):
    assert find_items(["fig5"], lens="typical") == (ITEM,)
    assert ITEM not in find_items([])
    with pytest.raises(InputError, match="no such item with typical lenses"):
        reproduce(["fig3b"], tmp_path, lens="typical")
