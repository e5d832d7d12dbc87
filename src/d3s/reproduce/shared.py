"""What several items share: the tuned twin, who is measured on it, and what the paper prints."""

from collections.abc import Sequence

from d3s.calibrate.tuning import CONSENSUS
from d3s.estimate.methods import METHODS
from d3s.evaluate import Contender
from d3s.evaluate.tuned_twin import TunedTwin, tuned_twin
from d3s.reproduce.item import Context
from d3s.types import Progress

PRINTED_RANGE_M = (0.3, 1.64)
"""Where the prototype errs by less than a centimetre: Fig. 5a."""
STEP_M = 0.04
"""Of the depths of the paper's protocol: a range that ends so near to another is alike."""
ACCURACY_THRESHOLD = 0.8
"""Of the confidence of the consensus, where the paper measures: planes and synthetic scenes.

Figs. 5 and S5 have it; Fig. 5b also shows what others would give."""
REAL_WORLD_THRESHOLD = 0.5
"""Of the same, where the paper shows real scenes: Fig. 7 keeps more of them, and has no numbers."""

PRINTED = Contender(
    method="consensus",
    options=CONSENSUS.replace(min_confidence=ACCURACY_THRESHOLD),
    label="consensus, Eq. 10",
)
"""The depth equation as derived: for a rig without calibration, as in the paper's simulations."""
TUNED = Contender(
    method="consensus", options={"min_confidence": ACCURACY_THRESHOLD}, label="consensus, tuned"
)
"""The depth equation with a and b, for a rig that carries them, as in the paper's experiments."""
OTHERS = tuple(Contender(method=name) for name in METHODS if name != "consensus")
"""All other methods, each with its own defaults."""


def twin_for(context: Context) -> TunedTwin:
    """The tuned twin: one for all items that use it, in a quick run too."""
    return tuned_twin(seed=context.seed)


def holds_printed_range(nearest_m: float, farthest_m: float) -> bool:
    """Whether a working range holds the paper's, but for a step at its far end."""
    return nearest_m <= PRINTED_RANGE_M[0] and farthest_m >= PRINTED_RANGE_M[1] - STEP_M


def in_turn(progress: Progress | None, sizes: Sequence[int]) -> list[Progress | None]:
    """Progress of works that come one after the other, each of so many steps, as one."""
    if progress is None:
        return [None] * len(sizes)

    def after(begun: int) -> Progress:
        return lambda done, _: progress(begun + done, sum(sizes))

    return [after(sum(sizes[:number])) for number in range(len(sizes))]
