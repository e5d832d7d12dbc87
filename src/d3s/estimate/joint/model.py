"""The camera as the joint method needs it: depth and defocus as functions of the disparity."""

from typing import NamedTuple

from d3s.estimate.joint.types import Array, DefocusLine
from d3s.rig import Optics


class Model(NamedTuple):
    """Disparity and defocus of a rig, in pixels of the frame."""

    per_dpt_px: float  # disparity per dioptre
    offset_px: float  # disparity at infinity
    alpha_px2_m: float  # defocus coefficient of the D3 equation
    kappa_dpt: float  # vergence at which both views are blurred alike

    @classmethod
    def of(cls, optics: Optics, *, use_defocus: bool) -> "Model":
        """Return the model of a rig; without defocus both views count as blurred alike."""
        return cls(
            optics.focal_length_px * optics.baseline_m,
            optics.disparity_offset_px,
            optics.alpha_px2_m if use_defocus else 0.0,
            optics.kappa_dpt,
        )

    def defocus_line(self, scale: int) -> DefocusLine:
        """Return half the blur-variance difference, right less left, over the disparity.

        It is alpha (1/Z - kappa), and 1/Z is linear in the disparity. Both are in pixels of the
        scale.
        """
        slope = self.alpha_px2_m / self.per_dpt_px
        constant = -slope * self.offset_px - self.alpha_px2_m * self.kappa_dpt
        return DefocusLine(constant / scale**2, slope / scale)

    def vergence_dpt(self, disparity_px: Array) -> Array:
        """Return 1/Z in dioptres at a disparity."""
        return (disparity_px - self.offset_px) / self.per_dpt_px
