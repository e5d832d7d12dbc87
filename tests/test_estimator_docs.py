"""Pages of the estimator against the code: their tables, Python, commands, and the ablation."""

import importlib.util
import re
import sys

import numpy as np
import pytest

import d3s
from d3s.estimate import ConsensusOptions, Flag, JointOptions, Options
from d3s.estimate.diagnosis import Cause
from d3s.estimate.joint import confidence, refine, smoothing
from page_runner import check_command, check_commands, is_target
from pages import DOCS, ROOT, blocks, python_blocks, shell_lines

GUIDE = (DOCS / "estimator.md").read_text()
METHOD = (DOCS / "estimator_method.md").read_text()
RESULTS = (DOCS / "estimator_results.md").read_text()
RIG = d3s.Rig.paper_prototype()


def test_page_has_every_flag_with_its_bit_and_reason():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", GUIDE, re.MULTILINE)
    expected = [(str(int(flag)), flag.name, flag.__doc__) for flag in Flag]
    table = "\n".join(f"| {bit} | `{name}` | {reason} |" for bit, name, reason in expected)
    assert rows == expected, f"write into docs/estimator.md:\n{table}"


def test_page_has_every_cause_of_a_warning():
    section = GUIDE.partition("## Warnings")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| .+ \| .+ \|$", section, re.MULTILINE)
    assert rows[1:] == list(Cause)


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
    section = GUIDE.partition("## Options")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", section, re.MULTILINE)
    kinds = (Options, JointOptions, ConsensusOptions)
    expected = [row for kind in kinds for row in _option_rows(kind)]
    table = "\n".join(f"| `{name}` | {default} | {words} |" for name, default, words in expected)
    assert rows == expected, f"write into docs/estimator.md:\n{table}"


def test_rules_of_the_filter_have_the_numbers_of_the_code():
    for words in (
        f"confidence >= {JointOptions().min_confidence:g} ",
        f"is {confidence._DEFOCUSED_WRONG:g} for a camera with lenses",
        f"and {confidence._SHARP_WRONG:g} for a sharp pair",
        f"is {confidence._SHARP_SIGMA_PX:g} px for a sharp pair",
        f"it is {confidence._DEFOCUSED_SIGMA_PX:g} px",
        f"grows by {confidence._WRONG_PX2:g} px² times",
        f"less the probability of {confidence._DEFOCUSED_HARMLESS:g} that",
        f"correlation beyond chance >= {confidence._MIN_CORRELATION:g} ",
        f"margin of the search >= {confidence._MIN_MARGIN:g} ",
        f"residual close by <= {confidence._MAX_MISFIT:g} times",
        f"sigma of {refine._DEFOCUSED_ANCHOR_PX:g} px of the search",
        f"({refine._SHARP_ANCHOR_PX:g} px for a camera without aperture). A fit",
        rf"\frac{{{smoothing._CHANCE_SIGMAS:g}}}{{\sqrt{{N - 3}}}}",
        f"plus {refine.UNEXPLAINED:g} of what the residual has beyond it",
    ):
        assert words in " ".join(METHOD.split()), words


@pytest.fixture(scope="module")
def scope() -> dict[str, object]:
    names: dict[str, object] = {}
    for page in ("estimator.md", "estimator_method.md"):
        for code in python_blocks(DOCS / page):
            exec(compile(code, page, "exec"), names)
    return names


def test_python_of_the_pages_runs(scope):
    assert 0 < scope["sure"].density < scope["est"].density < 1
    assert scope["printed"].method == "consensus"


def test_noise_passes_the_consensus_and_not_ours(scope):
    tried = np.mean((scope["chance"].flags & Flag.BORDER) == 0)
    assert (
        f"# {scope['passed']:.2f} of the frame, {scope['passed'] / tried:.0%}".replace("%", " %")
        in METHOD
    )
    assert scope["ours"] == 0


def test_gain_mismatch_costs_what_the_page_says(scope):
    def mae_cm(found: d3s.DepthMap) -> float:
        return 100 * float(np.nanmean(np.abs(found.depth_m - scope["pair"].depth_m)))

    plain, brighter = _numbers(GUIDE, r"from ([\d.]+) to [\d.]+ cm, one of 5 % to ([\d.]+) cm")
    assert mae_cm(scope["est"]) == pytest.approx(plain, rel=0.1)
    assert mae_cm(scope["brighter"]) == pytest.approx(brighter, rel=0.1)
    assert scope["est"].warnings == ()
    assert "the contrast of the right one, and" in scope["brighter"].warnings[0]


def _numbers(page: str, pattern: str) -> tuple[float, ...]:
    (found,) = re.findall(pattern, " ".join(page.split()))
    return tuple(map(float, found))


def test_depths_at_which_views_are_shrunk():
    """Where the wider of the two blurs is as wide as the page says."""
    (half_px, half_m, quarter_px, quarter_m) = _numbers(
        METHOD,
        r"radius of ([\d.]+) px on \(nearer than ([\d.]+) m .* from ([\d.]+) px on \(([\d.]+) m\)",
    )
    for radius_px, depth_m in ((half_px, half_m), (quarter_px, quarter_m)):
        blur = max(abs(float(RIG.optics.blur_radius_px(depth_m, camera))) for camera in (0, 1))
        assert blur == pytest.approx(radius_px, abs=0.2)


@pytest.mark.parametrize("name", ["estimator.md", "estimator_method.md"])
def test_commands_in_the_text_exist(name):
    check_commands(DOCS / name)


def test_every_command_of_the_results_exists():
    listed = [block.code for block in blocks(DOCS / "estimator_results.md")]
    commands = [words for code in listed for words in shell_lines(code)]
    assert len(commands) == 7
    for words in commands:
        if words[0] == "d3s":
            check_command(words)
        elif words[0] == "make":
            assert is_target(words[1]), words
        else:
            assert (ROOT / words[1]).is_file(), words


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
    table = RESULTS.partition(ablation.BEGIN)[2].partition(ablation.END)[0]
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
