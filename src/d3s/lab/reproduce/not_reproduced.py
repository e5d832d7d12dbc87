"""Parts of the paper that a computer cannot make again, with the reason."""

from typing import NamedTuple


class Missing(NamedTuple):
    """A part of the paper, what it shows, and why it cannot be made again."""

    reference: str
    what: str
    why: str


NOT_REPRODUCED: tuple[Missing, ...] = (
    Missing("Figs. 1a, 2, 3a", "drawings of the idea", "Explanations, without numbers."),
    Missing(
        "Fig. 1b",
        "working ranges of commercial stereo cameras",
        "Read from measurements of others and printed in the figure only; the text gives no more "
        "than that their baselines are 5 cm or longer.",
    ),
    Missing(
        "Figs. 4, S2",
        "photographs and CAD models of the prototype, and its list of parts",
        "Hardware. `d3s calibrate` is for whoever builds one.",
    ),
    Missing(
        "Figs. 5, S3",
        "errors and tuned parameters of the prototype itself",
        "Its captures are not public. The same protocol runs on the digital twin, whose lenses "
        "have no aberrations and whose planes stand where they should.",
    ),
    Missing(
        "Figs. 5, S4",
        "four textures of the CUReT collection",
        "Photographs with terms of their own. The package makes its own textures, of which those "
        "that report were never tuned on.",
    ),
    Missing(
        "Fig. 7",
        "real scenes, and their densified depth maps",
        "Captures of the prototype, and Marigold-DC, a network with weights to download. Rendered "
        "scenes with known depth stand in.",
    ),
    Missing(
        "Fig. S5",
        "the synthetic data set",
        "Its photographs are from MS-COCO and a collection of paintings. Layered scenes of our own "
        "textures stand in, rendered after the same recipe.",
    ),
    Missing(
        "Fig. S6",
        "measured point-spread functions",
        "They are the real lenses'. Those of the twin are computed: a disk, and a perfect lens "
        "limited by diffraction.",
    ),
    Missing(
        "Fig. 6, Table S2",
        "disparity errors of seven systems of others",
        "Taken by the paper from their publications; only the arithmetic between its columns can "
        "be checked.",
    ),
)
