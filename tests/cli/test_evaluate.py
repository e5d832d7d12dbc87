"""`d3s evaluate`, as a user runs it."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from d3s.cli import app
from d3s.rig import Rig

TINY = ("--distances", "0.6,90cm", "--patterns", "brick", "--shape", "100x220")
SMALL = ("--count", "1", "--shape", "160x240")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # so that no sentence is wrapped


def run(*arguments):
    # In this process: another would take longer to start than these sweeps take.
    here = ("--workers", "1") if arguments[0] in ("planes", "scenes", "thresholds") else ()
    return CliRunner().invoke(app, ["evaluate", *arguments, *here])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def test_planes_as_a_table_and_as_files():
    result = done("planes", "-m", "sgbm,bm", *TINY, "-o", "a [b]")
    assert result.stderr == "Trying 2 pairs.\n"
    for words in ("0.600", "0.900", "MAE / bound", "worst ratio to sgbm beyond 0.9 m", "dens."):
        assert words in result.stdout
    assert "Rows: a [b]/planes.csv\nDuels: a [b]/planes_duels.csv\n" in result.stdout
    rows = list(csv.DictReader(Path("a [b]/planes.csv").read_text().splitlines()))
    assert [(row["depth_m"], row["method"]) for row in rows] == [
        ("0.6", "sgbm"),
        ("0.6", "bm"),
        ("0.9", "sgbm"),
        ("0.9", "bm"),
    ]
    told = json.loads(Path("a [b]/planes.json").read_text())["parameters"]
    assert told["sweep"]["patterns"] == ["brick"]
    assert told["sweep"]["noise"] == 0.01


def test_scenes_as_a_table_and_as_files():
    Rig.paper_prototype().replace(name="mine").save("rig.toml")
    options = ("--depth-range", "50cm:1.5", "--seed", "7", "--noise", "0.02")
    options += ("--surfaces", "weak")
    more = ("--patterns", "tuning", "--psf", "gaussian", "--rig", "rig.toml")
    result = done("scenes", "-m", "bm:block_size_px=15", *SMALL, *options, *more)
    for words in ("bm:block_size_px=15", "MAE (cm)", "near edges", "interior", "kept"):
        assert words in result.stdout
    for words in ("within 3 sigma", "with the object's depth", "and not flagged"):
        assert words in result.stdout
    told = json.loads(Path("evaluation/scenes.json").read_text())["parameters"]
    sweep = told["sweep"]
    assert (sweep["count"], sweep["seed"], sweep["noise"], sweep["psf"]) == (1, 7, 0.02, "gaussian")
    assert (sweep["nearest_m"], sweep["farthest_m"]) == (0.5, 1.5)
    assert sweep["surfaces"] == "weak"
    assert sweep["patterns"][0] == "leaves"
    assert told["rig"]["name"] == "mine"
    assert told["methods"][0]["options"]["block_size_px"] == 15


def test_results_are_replaced_only_with_force():
    assert done("planes", "-m", "bm", *TINY, "--quiet").output == ""
    again = run("planes", "-m", "bm", *TINY)
    assert again.exit_code == 3
    assert again.stdout == ""  # told before the sweep, not after it
    assert "d3s: evaluation/planes.csv exists. Choose another folder" in again.stderr
    done("planes", "-m", "bm", *TINY, "--force")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("planes -m sgm", 2, "--method: method='sgm' must be one of joint, consensus, sgbm, bm"),
        ("planes -m bm:blck_size_px=9", 2, "Did you mean block_size_px?"),
        ("planes -m bm --patterns leaf", 2, "has 'leaf', and each must be one of leaves"),
        ("planes -m bm --distances 1:2", 2, "is no series. Write START:STOP:COUNT"),
        ("planes -m bm --shape 100", 2, "'100' is not a shape."),
        ("scenes -m bm --depth-range 2:2.1", 2, "must be at least 1.1 times nearest_m=2"),
        ("scenes -m bm --rig none.toml", 3, "none.toml"),
        ("thresholds -m bm --confidence 0,x", 2, "must be numbers with commas"),
        ("quality --frames 1", 3, "frames=1 must be from 2 to 1000"),
        ("quality --region 2 --frames 2 -m bm --shape 93x220", 2, "share=2.0 must be above 0"),
    ],
)
def test_wrong_use_is_told(arguments, code, words):
    result = run(*arguments.split())
    assert result.exit_code == code
    assert words in result.stderr
    assert not Path("evaluation").exists()


def test_thresholds_as_a_table_and_as_a_file():
    result = done("thresholds", "-m", "bm", *TINY, "--confidence", "0,1")
    assert "median" in result.stdout
    rows = list(csv.DictReader(Path("evaluation/thresholds.csv").read_text().splitlines()))
    assert [(row["depth_m"], row["threshold"]) for row in rows] == [
        ("0.6", "0.0"),
        ("0.6", "1.0"),
        ("0.9", "0.0"),
        ("0.9", "1.0"),
    ]
    told = json.loads(Path("evaluation/thresholds.json").read_text())
    assert told["parameters"]["thresholds"] == [0.0, 1.0]
    assert told["parameters"]["sweep"]["patterns"] == ["brick"]
    assert told["parameters"]["rig"]["optics"]["baseline_m"] == 3.84e-3
    assert [one["threshold"] for one in told["summary"]] == [0.0, 1.0]
    again = run("thresholds", "-m", "bm", *TINY)
    assert again.exit_code == 3
    assert "evaluation/thresholds.csv exists" in again.stderr


def test_quality_of_a_simulated_plane():
    small = ("--shape", "100x220", "--frames", "3", "-m", "bm", "-m", "sgbm")
    result = done("quality", "--distance", "60cm", *small)
    for words in ("A plane, 3 frames", "Z-accuracy", "sub-pixel RMS", "temporal noise", "sgbm"):
        assert words in result.stdout
    told = json.loads(done("quality", "--distance", "60cm", *small, "--json").stdout)
    assert (told["distance_m"], told["region"]) == (0.6, 0.8)
    bm = told["methods"]["bm"]
    assert bm["plane"]["fill_rate"] > 0.6
    assert abs(bm["plane"]["z_accuracy"]) < 0.01
    assert 0 < bm["plane"]["plane_fit_rms"] < 0.01
    assert 0 < bm["temporal"]["temporal_noise_m"] < 0.01


def test_quality_of_depth_maps_of_a_camera():
    import d3s

    rig = Rig.paper_prototype()
    for seed in range(2):
        plane = d3s.Plane(depth_m=0.6, texture="brick")
        pair = d3s.simulate(plane, rig, noise=0.01, seed=seed, shape=(100, 220))
        d3s.estimate(pair.left, pair.right, rig, method="bm").save(f"{seed}.npz")
    told = json.loads(done("quality", "0.npz", "1.npz", "--json").stdout)
    measured = told["methods"]["as measured"]
    assert told["distance_m"] is None
    assert measured["plane"]["z_accuracy"] is None
    assert measured["plane"]["plane_fit_rms_m"] < 0.005
    assert measured["frames"] == 2
    one = json.loads(done("quality", "0.npz", "--distance", "0.6", "--json").stdout)
    assert abs(one["methods"]["as measured"]["plane"]["z_accuracy"]) < 0.01
    assert one["methods"]["as measured"]["temporal"] is None
    shown = done("quality", "0.npz").stdout
    assert "nan" not in shown
    assert next(line for line in shown.splitlines() if "Z-accuracy" in line).count(" - ") == 1
    wrong = run("quality", "0.npz", "--frames", "3")
    assert wrong.exit_code == 2
    assert "--frames is for simulated planes" in wrong.stderr


def test_rooms_as_a_table_and_as_files(monkeypatch):
    from d3s.lab.evaluate import rooms
    from d3s.lab.rooms import mitsuba
    from d3s.lab.twin.pair import simulate
    from d3s.lab.twin.scenes import Plane

    def render(room, rig, folder, progress=None):
        return simulate(Plane(depth_m=1.0, texture="bark"), rig, shape=room.shape)

    monkeypatch.setattr(rooms, "load_or_render", render)
    monkeypatch.setattr(mitsuba, "check_installed", lambda: None)
    options = ("--count", "2", "--samples", "16", "--shape", "100x220", "--noise", "0.02")
    result = done("rooms", "-m", "bm", *options, "--pictures", "--keep", "k", "--workers", "1")
    assert "Rendering 2 rooms, or loading them from k." in result.stderr
    for words in ("All rooms", "Rooms with plain walls", "Rooms with textured walls", "3 s"):
        assert words in result.stdout
    told = json.loads(Path("evaluation/rooms.json").read_text())["parameters"]["sweep"]
    assert (told["count"], told["samples"], told["noise"], told["seed"]) == (2, 16, 0.02, 0)
    assert {path.name for path in Path("evaluation").iterdir()} == {
        "rooms.csv",
        "rooms_duels.csv",
        "rooms.json",
        "room_1000.png",
        "room_1001.png",
    }


@pytest.mark.parametrize("command", ["rooms", "twin"])
def test_without_mitsuba_the_error_names_the_extra(monkeypatch, command):
    from d3s.lab.rooms import mitsuba

    monkeypatch.setattr(mitsuba.importlib.util, "find_spec", lambda name: None)
    result = run(command)
    assert result.exit_code == 3
    assert "Mitsuba 3, which is not installed: pip install" in result.stderr
    assert "[render]'" in result.stderr
    assert not Path("evaluation").exists()


def test_the_twin_and_the_path_tracer_as_a_table_and_as_json(monkeypatch):
    from d3s.lab.evaluate import twin

    def compare(rig, **options):
        assert options["shape"] == (100, 150)
        row = twin.TwinRow(
            scene="plane", region="all", pixels=9, rms=0.004, noise=0.001, bias=-0.002
        )
        return [row]

    monkeypatch.setattr(twin, "compare_twin", compare)
    result = done("twin", "--shape", "100x150", "--samples", "64")
    for words in ("0.40 %", "-0.20 %", "0.10 %"):
        assert words in result.stdout
    (row,) = json.loads(done("twin", "--shape", "100x150", "--json", "--quiet").stdout)
    assert row["rms"] == 0.004
