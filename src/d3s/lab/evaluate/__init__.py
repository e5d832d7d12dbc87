"""Evaluation of depth estimation where the truth is known: simulated images, and data sets.

Methods and a sweep over planes or random scenes come in. Every method runs on the same simulated
pairs. Tables of errors, densities and times come out, with summaries, as Python objects, CSV and
JSON; `compare` also ranks methods at a common density.

truth           ground truth of a pair, and which of its pixels are judged
metrics         errors of a depth map, trust in its sigma and confidence, fattening
quality         fill rate, Z-accuracy, plane-fit and sub-pixel RMS, temporal noise of a plane
contender       a method with its options, under a name
cameras         simulated cameras with a calibration: the tuned twin, and one with typical lenses
sweep           planes and scenes of a sweep, and one noisy pair of them
table           the table of a sweep, its summariser, CSV and JSON
evaluation      a kind of evaluation, its run over a sweep, and its files
planes          planes over depth and texture, and over thresholds of confidence
scenes          random scenes, by region
rooms           path-traced rooms, by region and kind of walls
twin            the twin against the path tracer
league          all methods at full, own and common density
league_tables   the league as CSV and JSON, and its columns for tables
stereo          stereo data sets that users bring: a package
"""

from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.evaluation import SweepResults
from d3s.lab.evaluate.league import League, Program, compare
from d3s.lab.evaluate.metrics import Score, score
from d3s.lab.evaluate.planes import evaluate_planes, evaluate_thresholds
from d3s.lab.evaluate.quality import plane_quality, quality_of, temporal_noise
from d3s.lab.evaluate.rooms import RoomSweep, evaluate_rooms
from d3s.lab.evaluate.scenes import evaluate_scenes
from d3s.lab.evaluate.stereo import StereoResults, evaluate_stereo
from d3s.lab.evaluate.sweep import REPORT_PATTERNS, TUNING_PATTERNS, PlaneSweep, SceneSweep
from d3s.lab.evaluate.table import SweepTable
from d3s.lab.evaluate.truth import Truth, truth_of

__all__ = [
    "REPORT_PATTERNS",
    "TUNING_PATTERNS",
    "Contender",
    "League",
    "PlaneSweep",
    "Program",
    "RoomSweep",
    "SceneSweep",
    "Score",
    "StereoResults",
    "SweepResults",
    "SweepTable",
    "Truth",
    "compare",
    "evaluate_planes",
    "evaluate_rooms",
    "evaluate_scenes",
    "evaluate_stereo",
    "evaluate_thresholds",
    "plane_quality",
    "quality_of",
    "score",
    "temporal_noise",
    "truth_of",
]
