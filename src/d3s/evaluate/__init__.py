"""How good is an estimator? Metrics against the truth of the twin, and sweeps over many pairs.

patterns   which textures choices may be made on, and which the report is made on
truth      what is true of a pair, and which of its pixels count
metrics    the figures of one depth map, and of two on the pixels that both retained
ranking    does a method know where it is wrong: thresholds, sparsification, coverage
contender  who takes part
trial      one noisy pair, its truth, and what each contender makes of it
jobs       trials in several processes, kept on disk until the sweep is done
planes     the sweep over planes, and its summary
scenes     the sweep over random scenes, and its summary
league     all methods at full density, as they come, and at a common density
tables     results as CSV and JSON
"""

from d3s.evaluate.contender import Contender
from d3s.evaluate.league import League, Program, league
from d3s.evaluate.metrics import Duel, Score, duel, score, working_range_m
from d3s.evaluate.patterns import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.evaluate.planes import PlaneResults, PlaneSweep, evaluate_planes
from d3s.evaluate.ranking import (
    AtThreshold,
    Ranking,
    coverage,
    ranked_errors_m,
    ranking,
    threshold_curve,
)
from d3s.evaluate.scenes import SceneResults, SceneSweep, evaluate_scenes
from d3s.evaluate.truth import Truth, truth_of

__all__ = [
    "REPORT_PATTERNS",
    "TUNING_PATTERNS",
    "AtThreshold",
    "Contender",
    "Duel",
    "League",
    "PlaneResults",
    "PlaneSweep",
    "Program",
    "Ranking",
    "SceneResults",
    "SceneSweep",
    "Score",
    "Truth",
    "coverage",
    "duel",
    "evaluate_planes",
    "evaluate_scenes",
    "league",
    "ranked_errors_m",
    "ranking",
    "score",
    "threshold_curve",
    "truth_of",
    "working_range_m",
]
