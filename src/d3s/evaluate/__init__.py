"""How good is an estimator? Metrics against the truth of the twin, and sweeps over many pairs.

patterns   which textures choices may be made on, and which the report is made on
truth      what is true of a pair, and which of its pixels count
metrics    the figures of one depth map, and of two on the pixels that both retained
quality    fill rate, Z-accuracy, plane-fit and sub-pixel RMS, temporal noise
ranking    does a method know where it is wrong: thresholds, sparsification, coverage
contender  who takes part
trial      one noisy pair, its truth, and what each contender makes of it
jobs       trials in several processes, kept on disk until the sweep is done
worker     one process of a sweep
plain      results as tables that JSON can hold, and back
planes     the sweep over planes, and its summary
scenes     the sweep over random scenes, and its summary
thresholds planes over thresholds of confidence
league     all methods at full density, as they come, and at a common density
tuned      the camera whose depth equation is tuned as the paper tunes its own
frames     repeated frames of one plane
tables     results as CSV and JSON

league_tables  the league as files and as Markdown
"""

from d3s.calibrate.validation import working_range_m
from d3s.evaluate.contender import Contender
from d3s.evaluate.league import League, Program, compare
from d3s.evaluate.metrics import Duel, Score, duel, score
from d3s.evaluate.planes import PlaneResults, PlaneSweep, evaluate_planes
from d3s.evaluate.quality import (
    PlaneQuality,
    Quality,
    TemporalNoise,
    plane_quality,
    quality_of,
    temporal_noise,
)
from d3s.evaluate.ranking import (
    AtThreshold,
    Ranking,
    Trust,
    coverage,
    rank,
    ranked_errors_m,
    threshold_curve,
    trust_of,
)
from d3s.evaluate.scenes import SceneResults, SceneSweep, evaluate_scenes
from d3s.evaluate.texture_sets import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.evaluate.thresholds import ThresholdResults, evaluate_thresholds
from d3s.evaluate.truth import Truth, truth_of

__all__ = [
    "REPORT_PATTERNS",
    "TUNING_PATTERNS",
    "AtThreshold",
    "Contender",
    "Duel",
    "League",
    "PlaneQuality",
    "PlaneResults",
    "PlaneSweep",
    "Program",
    "Quality",
    "Ranking",
    "SceneResults",
    "SceneSweep",
    "Score",
    "TemporalNoise",
    "ThresholdResults",
    "Trust",
    "Truth",
    "compare",
    "coverage",
    "duel",
    "evaluate_planes",
    "evaluate_scenes",
    "evaluate_thresholds",
    "plane_quality",
    "quality_of",
    "rank",
    "ranked_errors_m",
    "score",
    "temporal_noise",
    "threshold_curve",
    "trust_of",
    "truth_of",
    "working_range_m",
]
