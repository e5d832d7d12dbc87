"""Protocol of the paper: printed values, thresholds, and the methods measured on the tuned twin."""

from d3s.calibrate.tuning import CONSENSUS
from d3s.estimate.methods import methods
from d3s.lab.evaluate import Contender
from d3s.lab.evaluate.cameras import TunedTwin, tuned_twin
from d3s.lab.reproduce.item import Context

PRINTED_RANGE_M = (0.3, 1.64)
"""Depths at which the error of the prototype is below 1 cm: Fig. 5a."""
STEP_M = 0.04
"""Step of the depths of the paper's protocol; ranges count as equal within one step."""
ACCURACY_THRESHOLD = 0.8
"""Least confidence of the consensus on planes and synthetic scenes: Figs. 5 and S5.

Fig. 5b shows other thresholds too."""
REAL_WORLD_THRESHOLD = 0.5
"""Least confidence of the consensus on real scenes: Fig. 7, which keeps more pixels."""

PRINTED = Contender(
    method="consensus",
    options=CONSENSUS.replace(min_confidence=ACCURACY_THRESHOLD, as_printed=True),
    label="consensus, Eq. 10",
)
"""The depth equation as derived: for a rig without calibration, as in the paper's simulations."""
TUNED = Contender(
    method="consensus", options={"min_confidence": ACCURACY_THRESHOLD}, label="consensus, tuned"
)
"""The depth equation with a and b, for a rig that carries them, as in the paper's experiments."""
_NOT_OTHERS = ("consensus", "defocus")  # defocus alone is for a camera without a baseline
OTHERS = tuple(Contender(method=name) for name in methods() if name not in _NOT_OTHERS)
"""All other methods, each with its own defaults."""
WHOLE = tuple(
    Contender(method=name, options={"labels": "whole"}, label=f"{name}, whole labels")
    for name in ("li2010", "takeda2013")
)
"""Rivals that choose a label, as their papers do, and do not refine it."""


def twin_for(context: Context) -> TunedTwin:
    """Return the tuned twin, the same for all items, in a quick run too."""
    return tuned_twin(seed=context.seed)


def holds_printed_range(nearest_m: float, farthest_m: float) -> bool:
    """Whether a working range contains the paper's, except for one step at its far end."""
    return nearest_m <= PRINTED_RANGE_M[0] and farthest_m >= PRINTED_RANGE_M[1] - STEP_M
