"""Items made, kept, made again and put on the page; with items that cost nothing."""

import json

import pytest
from matplotlib.figure import Figure

from d3s.errors import InputError, OutputError
from d3s.lab.reproduce.item import Comparison, Context, Item, Picture, Result, Table, stored_result
from d3s.lab.reproduce.run import find_items, reproduce


def row(value, *, agrees=True):
    return Comparison(
        what="a thing", paper="1 < 2", ours=value, same_conditions=False, why="so", agrees=agrees
    )


def an_item(name, calls, *, uses=(), make=None):
    """An item that counts how often it is made."""

    def run(context: Context) -> Result:
        calls.append((name, context))
        if make is not None:
            return make(context)
        return Result(
            pictures=[Picture(name=name, figure=Figure((1, 1)), caption="see <this>")],
            tables=[Table(name="numbers", rows=[{"x": 1.5, "ok": True}], shown=True)],
            comparisons=[row("2 & 3")],
            remarks=["found it with `d3s & co`"],
        )

    return Item(
        name=name,
        title=f"title of {name}",
        reference=f"Fig. {name}",
        what="what to see",
        needs="seconds",
        run=run,
        uses=uses,
    )


@pytest.fixture
def calls():
    return []


def states(outcomes):
    return {outcome.item.name: outcome.state for outcome in outcomes}


def test_an_item_is_made_once(tmp_path, calls):
    items = an_item("one", calls), an_item("two", calls)
    root = tmp_path / "out"
    assert states(reproduce((), root, items=items)) == {"one": "made", "two": "made"}
    assert states(reproduce((), root, items=items)) == {"one": "kept", "two": "kept"}
    assert states(reproduce(["two"], root, items=items)) == {"two": "kept"}
    assert [name for name, _ in calls] == ["one", "two"]
    assert states(reproduce(["two"], root, items=items, overwrite=True)) == {"two": "made"}
    assert len(calls) == 3
    for name in ("one.png", "one.pdf", "numbers.csv", "result.json"):
        assert (root / "one" / name).is_file()
    assert (root / "one/numbers.csv").read_text() == "x,ok\n1.5,True\n"


def test_another_seed_or_size_is_another_result(tmp_path, calls):
    items = (an_item("one", calls),)
    assert states(reproduce((), tmp_path, items=items, quick=True)) == {"one": "made"}
    assert states(reproduce((), tmp_path, items=items, quick=True, seed=1)) == {"one": "made"}
    assert states(reproduce((), tmp_path, items=items, seed=1)) == {"one": "made"}
    # What was made in full is better than a quick look.
    assert states(reproduce((), tmp_path, items=items, quick=True, seed=1)) == {"one": "kept"}
    assert [context.quick for _, context in calls] == [True, True, False]
    photos = {"seed": 1, "photos": "mine"}
    assert states(reproduce((), tmp_path, items=items, **photos)) == {"one": "made"}
    assert calls[3][1].photos == "mine"
    assert calls[2][1].seed == 1


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("fig5", "accuracy"),
        ("Fig. 5", "accuracy"),
        ("fig. 5a", "accuracy"),
        ("Fig 5C", "accuracy"),
        ("Table S2", "systems"),
        ("real-world", "real_world"),
        (" fig3b ", "consensus_plane"),
        ("Eq. S11", "baselines"),
    ],
)
def test_a_place_in_the_paper_as_people_type_it(typed, found):
    assert [item.name for item in find_items([typed])] == [found]


def test_what_was_damaged_is_made_again(tmp_path, calls):
    items = (an_item("one", calls),)
    reproduce((), tmp_path, items=items)
    (tmp_path / "one/one.pdf").unlink()
    reproduce((), tmp_path, items=items)
    (tmp_path / "one/result.json").write_text("{")
    reproduce((), tmp_path, items=items)
    assert len(calls) == 3
    stored = stored_result(tmp_path, "one")
    stored["made_from"]["version"] = "0.0.0"
    (tmp_path / "one/result.json").write_text(json.dumps(stored))
    reproduce((), tmp_path, items=items)
    assert len(calls) == 4
    (tmp_path / "one/result.json").write_text('{"made_from": {}}')
    reproduce((), tmp_path, items=items)
    assert len(calls) == 5


def test_a_failing_item_loses_no_other(tmp_path, calls):
    def fail(context):
        raise ZeroDivisionError("oh dear")

    items = an_item("bad", calls, make=fail), an_item("good", calls)
    outcomes = reproduce((), tmp_path, items=items)
    assert states(outcomes) == {"bad": "failed", "good": "made"}
    assert "ZeroDivisionError: oh dear" in outcomes[0].words
    assert "in fail" in (tmp_path / "bad/error.txt").read_text()
    page = (tmp_path / "index.html").read_text()
    assert "Failed" in page
    assert "title of good" in page
    # Mended, it is made the next time, and nothing speaks of the failure any more.
    items = an_item("bad", calls), items[1]
    assert states(reproduce((), tmp_path, items=items)) == {"bad": "made", "good": "kept"}
    assert not (tmp_path / "bad/error.txt").exists()
    assert "Failed" not in (tmp_path / "index.html").read_text()


def test_a_disk_that_fails_stops_everything(tmp_path, calls):
    def fail(context):
        raise OutputError("the disk is full")

    with pytest.raises(OutputError, match="disk is full"):
        reproduce((), tmp_path, items=(an_item("bad", calls, make=fail), an_item("x", calls)))
    assert len(calls) == 1


def test_an_item_takes_the_tables_of_another(tmp_path, calls):
    def use(context):
        return Result(remarks=[str(context.tables_of("one"))])

    user, one = an_item("user", calls, uses=("one",), make=use), an_item("one", calls)
    items = user, one
    reproduce(["user"], tmp_path, items=items)
    assert stored_result(tmp_path, "user")["remarks"] == ["None"]
    # It comes after what it uses, and again since that is there now.
    assert states(reproduce((), tmp_path, items=items)) == {"one": "made", "user": "made"}
    assert stored_result(tmp_path, "user")["remarks"] == ["{'numbers': [{'x': 1.5, 'ok': True}]}"]
    assert states(reproduce((), tmp_path, items=items)) == {"one": "kept", "user": "kept"}
    reproduce(["one"], tmp_path, items=items, seed=3)
    assert states(reproduce(["user"], tmp_path, items=items)) == {"user": "made"}


def test_wrong_use(tmp_path, calls):
    items = an_item("one", calls), an_item("two", calls)
    with pytest.raises(InputError, match=r"'rain', 'fog': no such item. There are one \(Fig"):
        reproduce(["rain", "one", "fog"], tmp_path / "x", items=items)
    with pytest.raises(InputError, match="workers=0 must be a whole number"):
        reproduce((), tmp_path / "x", items=items, workers=0)
    assert not (tmp_path / "x").exists()
