"""The camera as the joint method sees it."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from d3s.rig import Optics

Array = NDArray[Any]  # of the precision of the operations


class Model(NamedTuple):
    """Lines over the disparity, in pixels of the frame."""

    per_dpt_px: float  # disparity of one dioptre
    offset_px: float  # disparity at infinity
    alpha_px2_m: float
    kappa_dpt: float

    @classmethod
    def of(cls, optics: Optics, *, use_defocus: bool) -> "Model":
        """Numbers of a rig; without defocus the views are compared as if blurred alike."""
        return cls(
            optics.focal_length_px * optics.baseline_m,
            optics.disparity_offset_px,
            optics.alpha_px2_m if use_defocus else 0.0,
            optics.kappa_dpt,
        )

    def defocus_line(self, scale: int) -> tuple[float, float]:
        """Half the blur-variance difference, right less left, as a line over the disparity.

        It is alpha (1/Z - kappa), and 1/Z is a line over the disparity. In pixels of which
        `scale` of the frame make one.
        """
        slope = self.alpha_px2_m / self.per_dpt_px
        constant = -slope * self.offset_px - self.alpha_px2_m * self.kappa_dpt
        return constant / scale**2, slope / scale

    def vergence_dpt(self, disparity_px: Array) -> Array:
        """1/Z at a disparity."""
        return (disparity_px - self.offset_px) / self.per_dpt_px
