"""docs/estimator.md tells the truth: its tables, its Python, its commands, and the ablation."""

import importlib.util
import re
import shlex
import sys

import numpy as np
import pytest
import typer.main

import d3s
from d3s.cli import app
from d3s.estimate import ConsensusOptions, Flag, JointOptions, Options
from d3s.estimate.joint import confidence as judge
from d3s.estimate.joint import refine
from d3s.estimate.joint import types as fitting
from pages import DOCS, ROOT, python_blocks

PAGE = (DOCS / "estimator.md").read_text()
RIG = d3s.Rig.paper_prototype()


def _section(begin: str, end: str) -> str:
    return PAGE.partition(begin)[2].partition(end)[0]


def test_page_has_every_flag_with_its_bit_and_reason():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(str(int(flag)), flag.name, flag.__doc__) for flag in Flag]


def _option_rows(kind: type[Options]) -> list[tuple[str, str, str]]:
    own = [
        name for name in kind.model_fields if kind is Options or name not in Options.model_fields
    ]
    fields = {name: kind.model_fields[name] for name in own}
    return [
        (
            name,
            "by the camera" if field.default is None else f"`{field.default!r}`",
            field.description,
        )
        for name, field in fields.items()
    ]


def test_page_has_every_option_with_its_default():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", _section("## Options", "\n## "), re.M)
    kinds = (Options, JointOptions, ConsensusOptions)
    assert rows == [row for kind in kinds for row in _option_rows(kind)]


def test_rules_of_the_filter_have_the_numbers_of_the_code():
    for words in (
        f"confidence >= {JointOptions().min_confidence:g} ",
        f"correlation beyond chance >= {judge._LEAST_CORRELATION:g} ",
        f"margin of the search >= {judge._LEAST_MARGIN:g} ",
        f"residual close by <= {judge._LARGEST_MISFIT:g} times",
        f"smallest window <= {judge._SPREAD_PX:g} px",
        rf"\frac{{{fitting._CHANCE:g}}}{{\sqrt{{N - 3}}}}",
        f"plus {refine._UNEXPLAINED:g} of what the residual has beyond it",
    ):
        assert words in " ".join(PAGE.split()), words


@pytest.fixture(scope="module")
def scope() -> dict[str, object]:
    names: dict[str, object] = {}
    for code in python_blocks(DOCS / "estimator.md"):
        exec(compile(code, "estimator.md", "exec"), names)
    return names


def test_python_of_the_page_runs(scope):
    assert 0 < scope["sure"].density < scope["est"].density < 1
    assert scope["printed"].method == "consensus"


def test_noise_passes_the_consensus_and_not_ours(scope):
    tried = np.mean((scope["chance"].flags & Flag.BORDER) == 0)
    assert (
        f"# {scope['passed']:.2f} of the frame, {scope['passed'] / tried:.0%}".replace("%", " %")
        in PAGE
    )
    assert scope["ours"] == 0


def test_gain_mismatch_costs_what_the_page_says(scope):
    def mae_cm(found: d3s.DepthMap) -> float:
        return 100 * float(np.nanmean(np.abs(found.depth_m - scope["pair"].depth_m)))

    plain, brighter = _numbers(r"from ([\d.]+) to [\d.]+ cm, one of 5 % to ([\d.]+) cm")
    assert mae_cm(scope["est"]) == pytest.approx(plain, rel=0.1)
    assert mae_cm(scope["brighter"]) == pytest.approx(brighter, rel=0.1)
    assert scope["est"].warnings == ()
    assert "the contrast of the right one, and" in scope["brighter"].warnings[0]


def _numbers(pattern: str) -> tuple[float, ...]:
    (found,) = re.findall(pattern, " ".join(PAGE.split()))
    return tuple(map(float, found))


def test_depths_at_which_views_are_shrunk():
    """Where the wider of the two blurs is as wide as the page says."""
    (half_px, half_m, quarter_px, quarter_m) = _numbers(
        r"radius of ([\d.]+) px on \(nearer than ([\d.]+) m .* from ([\d.]+) px on \(([\d.]+) m\)"
    )
    for radius_px, depth_m in ((half_px, half_m), (quarter_px, quarter_m)):
        blur = max(abs(float(RIG.optics.blur_radius_px(depth_m, camera))) for camera in (0, 1))
        assert blur == pytest.approx(radius_px, abs=0.2)


def test_commands_of_the_page_are_there():
    lines = [
        line for block in re.findall(r"```text\n(.*?)```", PAGE, re.S) for line in block.split("\n")
    ]
    commands = [shlex.split(line) for line in lines if line]
    known = typer.main.get_command(app).commands["evaluate"].commands
    for command in commands:
        if command[0] == "d3s":
            assert command[1] == "evaluate"
            options = {name for option in known[command[2]].params for name in option.opts}
            assert {word for word in command if re.match(r"--?[a-z]", word)} <= options
        else:
            assert (ROOT / command[1]).is_file()


# The ablation -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ablation():
    path = ROOT / "benchmarks" / "ablation.py"
    spec = importlib.util.spec_from_file_location("ablation", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["ablation"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_page_has_every_variant_of_the_ablation(ablation):
    table = _section(ablation.BEGIN, ablation.END)
    heading = next(line for line in table.splitlines() if line.startswith("| variant"))
    cells = [cell.strip() for cell in heading.strip("|").split("|")]
    assert cells == ["variant", *(column.heading for column in ablation.COLUMNS.values())]
    names = re.findall(r"^\| ([a-z\d][^|]*?) +\| ", table.partition(heading)[2], re.MULTILINE)
    assert names[: len(ablation.PARTS)] == [one.name for one in ablation.PARTS]


def test_sweeps_measure_the_variants_themselves(ablation):
    planes = ablation.PLANES.replace(depths_m=(0.6,), patterns=("text",), shape=(93, 220))
    scenes = ablation.SCENES.replace(count=1, shape=(120, 260))
    noise_only = next(one for one in ablation.PARTS if one.name == "sigma: noise only")
    default, other = ablation.measured((ablation.DEFAULT, noise_only), planes, planes, scenes)
    assert other.coverage < default.coverage
    assert other.same_pixels == pytest.approx(1, abs=0.1)
    assert other.scenes_same_pixels == pytest.approx(1, abs=0.1)


def test_every_variant_changes_something_and_leaves_no_trace(ablation):
    """A name that is exchanged but not used would measure nothing."""
    scene = d3s.RandomScene(seed=5, nearest_m=0.3, farthest_m=2.0)
    pair = d3s.simulate(scene, RIG, noise=0.03, shape=(150, 280))

    def seen(variant) -> bytes:
        found = variant.estimate(pair.left, pair.right, RIG)
        return b"".join(
            part.tobytes() for part in (found.depth_m, found.sigma_m, found.confidence, found.flags)
        )

    default = seen(ablation.DEFAULT)
    idle = [one.name for one in ablation.PARTS if seen(one) == default]
    assert idle == ["default"]
    assert seen(ablation.DEFAULT) == default


def test_tables_go_between_the_marks(ablation):
    page = f"before\n{ablation.BEGIN}\nold\n{ablation.END}\nafter"
    changed = ablation.with_tables(page, "new")
    assert changed == f"before\n{ablation.BEGIN}\n\nnew\n\n{ablation.END}\nafter"
    assert ablation.with_tables(changed, "new") == changed
    with pytest.raises(SystemExit):
        ablation.with_tables("no marks", "new")
