"""Evaluation of depth estimation where the truth is known: simulated images, and data sets.

Methods and a sweep over planes or random scenes come in. Every method runs on the same simulated
pairs. Tables of errors, densities and times come out, with summaries, as Python objects, CSV and
JSON; `compare` also ranks methods at a common density.

truth           ground truth of a pair, and which of its pixels are judged
metrics         errors of a depth map, and of two on the pixels that both retained
fattening       background beside an object that gets the depth of the object
ranking         does confidence or sigma rank errors: thresholds, sparsification, coverage
quality         fill rate, Z-accuracy, plane-fit and sub-pixel RMS, temporal noise of a plane
contender       a method with its options, under a name
sweep           planes and scenes of a sweep, and one noisy pair of them
table           the table of a sweep, its summariser, CSV and JSON
evaluation      a kind of evaluation, its run over a sweep, and its files
planes          planes over depth and texture
scenes          random scenes, by region
rooms           path-traced rooms, by region and kind of walls
twin            the twin against the path tracer
thresholds      planes over thresholds of confidence
league          all methods at full, own and common density
league_tables   the league as CSV, JSON and Markdown
stereo          stereo data sets that users bring: a package
tuned_twin      the simulated camera, tuned as the paper tunes its own
typical_camera  the simulated camera with typical lenses, calibrated
"""

from d3s.calibrate.validation import working_range_m
from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.evaluation import Evaluation, SweepResults
from d3s.lab.evaluate.fattening import Beside, Fattening, background_beside, fattening_of
from d3s.lab.evaluate.league import League, Program, compare
from d3s.lab.evaluate.metrics import Duel, Score, duel, score
from d3s.lab.evaluate.planes import evaluate_planes
from d3s.lab.evaluate.quality import (
    PlaneQuality,
    Quality,
    TemporalNoise,
    plane_quality,
    quality_of,
    temporal_noise,
)
from d3s.lab.evaluate.ranking import (
    AtThreshold,
    Ranking,
    Trust,
    coverage,
    rank,
    ranked_errors_m,
    threshold_curve,
    trust_of,
)
from d3s.lab.evaluate.rooms import RoomSweep, evaluate_rooms
from d3s.lab.evaluate.scenes import evaluate_scenes
from d3s.lab.evaluate.stereo import StereoResults, evaluate_stereo
from d3s.lab.evaluate.sweep import REPORT_PATTERNS, TUNING_PATTERNS, PlaneSweep, SceneSweep
from d3s.lab.evaluate.table import SweepTable, summarise
from d3s.lab.evaluate.thresholds import evaluate_thresholds
from d3s.lab.evaluate.truth import Truth, truth_of

__all__ = [
    "REPORT_PATTERNS",
    "TUNING_PATTERNS",
    "AtThreshold",
    "Beside",
    "Contender",
    "Duel",
    "Evaluation",
    "Fattening",
    "League",
    "PlaneQuality",
    "PlaneSweep",
    "Program",
    "Quality",
    "Ranking",
    "RoomSweep",
    "SceneSweep",
    "Score",
    "StereoResults",
    "SweepResults",
    "SweepTable",
    "TemporalNoise",
    "Trust",
    "Truth",
    "background_beside",
    "compare",
    "coverage",
    "duel",
    "evaluate_planes",
    "evaluate_rooms",
    "evaluate_scenes",
    "evaluate_stereo",
    "evaluate_thresholds",
    "fattening_of",
    "plane_quality",
    "quality_of",
    "rank",
    "ranked_errors_m",
    "score",
    "summarise",
    "temporal_noise",
    "threshold_curve",
    "trust_of",
    "truth_of",
    "working_range_m",
]
