"""All items, in the order of the paper, in which they stand on the page."""

from collections.abc import Sequence

from d3s.errors import InputError
from d3s.reproduce.ab_fit import AB_FIT
from d3s.reproduce.accuracy import ACCURACY
from d3s.reproduce.baselines import BASELINES
from d3s.reproduce.cases import SPECIAL_CASES
from d3s.reproduce.consensus_plane import CONSENSUS_PLANE
from d3s.reproduce.item import Item, plain
from d3s.reproduce.psf import PSF
from d3s.reproduce.real_world import REAL_WORLD
from d3s.reproduce.synthetic import SYNTHETIC
from d3s.reproduce.systems import SYSTEMS
from d3s.reproduce.teaser import TEASER
from d3s.reproduce.zici import ZICI

ITEMS: tuple[Item, ...] = (
    TEASER,
    CONSENSUS_PLANE,
    ACCURACY,
    SYSTEMS,
    REAL_WORLD,
    SPECIAL_CASES,
    ZICI,
    AB_FIT,
    BASELINES,
    SYNTHETIC,
    PSF,
)


def find_items(names: Sequence[str], items: Sequence[Item] = ITEMS) -> tuple[Item, ...]:
    """Items of these names, or with these references, in the registry's order; all for none.

    Raises
    ------
    InputError
        Naming what is not known, and all names and places that are.
    """
    if not names:
        return tuple(items)
    keys = {item.name: {plain(item.name), *item.aliases} for item in items}
    unknown = [name for name in names if not any(plain(name) in known for known in keys.values())]
    if unknown:
        raise InputError(
            f"{', '.join(map(repr, unknown))}: no such item. There are "
            f"{', '.join(f'{item.name} ({item.reference})' for item in items)}."
        )
    wanted = {plain(name) for name in names}
    return tuple(item for item in items if wanted & keys[item.name])
