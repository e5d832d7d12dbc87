"""Whether left and right were confused."""

from collections.abc import Callable

from d3s.estimate import DepthMap
from d3s.types import Image

# Of a pair that is not swapped, most pixels have a depth; swapped, only what fits by chance.
_POOR, _RICH = 0.15, 0.4
_STRIP_PX = 160

Estimator = Callable[[Image, Image], DepthMap]


def swapped_words(found: DepthMap, left: Image, right: Image, estimator: Estimator) -> str | None:
    """What to say if the views give depth the other way round, and hardly any as they are.

    Tried on a strip across the middle, and only where the depth map is poor.
    """
    if found.density > _POOR:
        return None
    top = max(0, (left.shape[0] - _STRIP_PX) // 2)
    strip = slice(top, top + _STRIP_PX)
    given = float(found.valid[strip].mean())
    turned = estimator(right[strip], left[strip]).density
    if turned < _RICH or given > _POOR:
        return None
    return (
        f"left and right seem to be swapped: {given:.0%} of the pixels have a depth as given, and "
        f"{turned:.0%} the other way round. Give the views in the other order."
    )
