"""Registry of all items, in the order of the paper, which is their order on the page.

A new item is a new module, with an `Item` of the name `ITEM`, and one line here.
"""

from collections.abc import Sequence
from importlib import import_module

from d3s.errors import InputError
from d3s.lab.evaluate.cameras import Lens
from d3s.lab.reproduce.item import Item, plain

_MODULES = (
    "d3s.lab.reproduce.fig1b_working_range",
    "d3s.lab.reproduce.fig3b_consensus_plane",
    "d3s.lab.reproduce.fig5_accuracy",
    "d3s.lab.reproduce.fig5_typical",
    "d3s.lab.reproduce.fig6_systems",
    "d3s.lab.reproduce.fig7_real_world",
    "d3s.lab.reproduce.tab_s1_cases",
    "d3s.lab.reproduce.fig_s1_confidence",
    "d3s.lab.reproduce.fig_s3_scale_and_offset",
    "d3s.lab.reproduce.eq_s11_baselines",
    "d3s.lab.reproduce.fig_s5_synthetic_scenes",
    "d3s.lab.reproduce.fig_s6_psf",
)

ITEMS: tuple[Item, ...] = tuple(import_module(name).ITEM for name in _MODULES)


def find_items(
    names: Sequence[str], items: Sequence[Item] = ITEMS, lens: Lens = "perfect"
) -> tuple[Item, ...]:
    """Return items by their names or places in the paper, in the registry's order; all for none.

    An unknown name is refused with a list of all names and places. Items with other lenses are left
    out.
    """
    items = [item for item in items if item.lens == lens]
    if not names:
        return tuple(items)
    known = {item.name: {plain(item.name), *item.places} for item in items}
    unknown = [name for name in names if not any(plain(name) in keys for keys in known.values())]
    if unknown:
        kind = "" if lens == "perfect" else f" with {lens} lenses"
        raise InputError(
            f"{', '.join(map(repr, unknown))}: no such item{kind}. There are "
            f"{', '.join(f'{item.name} ({item.reference})' for item in items)}."
        )
    wanted = {plain(name) for name in names}
    return tuple(item for item in items if wanted & known[item.name])
