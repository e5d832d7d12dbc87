"""Alignment: places on the board, and all that follows from places alone.

Distortion and the axes of the lenses, the rectification of the rows, and the relation of disparity
and depth; then a rig that can split frames.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from d3s.calibrate.anchors import Anchors, find_anchors
from d3s.calibrate.coma import Coma
from d3s.calibrate.distortion_fit import Board, Distortion, find_distortion, no_distortion
from d3s.calibrate.fields import Fields, largest_crop
from d3s.calibrate.frames import Captures, ColourSensor
from d3s.calibrate.geometry import Geometry, find_geometry
from d3s.calibrate.matches import Matches, PairMatches, find_matches
from d3s.calibrate.rectification import Rectification, find_rectification
from d3s.calibrate.sensor_noise import Noise
from d3s.errors import CalibrationError
from d3s.rig import Calibration, LensMaps, Provenance, Rig
from d3s.types import FloatArray, Progress

# Standard deviation of the bowls of boards; and of a bowl that is fitted, per pixel of coma and per
# dioptre of curvature at the field radius: tuning camera, without and with curvature.
_BOWL_PER_M, _BOWL_PER_COMA, _BOWL_PER_DPT = 0.03, 0.006, 0.05
_DISTORTION_PX = 0.5  # at the field radius: more is that of a real lens
_MOST_DETAIL = 2.0  # k² times blur variance up to which a wave is shifted in proportion


class Setup(NamedTuple):
    """Inputs that the calibration and its cross-validation share."""

    design: Rig  # the camera as built
    fit_ruler: bool | None  # apply the offset of the ruler; None: if it is significant
    name: str  # of the camera
    provenance: Provenance  # residuals still empty
    sensor: ColourSensor | None = None  # None: a mono sensor
    coma: Coma | None = None  # if it is known already
    as_printed: bool = False  # anchors and rectification as in the paper's supplement


class AlignedMatches(NamedTuple):
    """Results of the steps that use places on the board, not the views themselves."""

    matches: Matches
    distortion: Distortion
    anchors: Anchors  # of views without distortion, as are the next two
    rectification: Rectification
    geometry: Geometry
    bowl_doubt_per_m: float = 0.0  # standard deviation of the bowl by errors of the lenses

    @property
    def left_out(self) -> dict[int, str]:
        """Rejected frames, except those rejected by the anchor step only."""
        return self.geometry.left_out | self.rectification.left_out | self.matches.left_out

    @property
    def frames(self) -> list[int]:
        """Numbers of the frames that no step but that of the anchors rejected."""
        return [frame for frame in self.matches.kept if frame not in self.left_out]

    @property
    def board(self) -> Board:
        """Shape of the board, without the bowl that errors of lenses imitate.

        A bowl, bent alike along X and Y, moves places as a distortion in proportion to the distance
        does. The shift of detail by coma, and by blur that changes over the field, is known only
        roughly, and its error looks like a bowl.
        """
        along, mixed, down = self.distortion.bend_per_m
        bowl, saddle = 0.5 * (along + down), 0.5 * (along - down)
        bowl *= _BOWL_PER_M**2 / (_BOWL_PER_M**2 + self.bowl_doubt_per_m**2)
        return Board(self.geometry.slopes, (bowl + saddle, mixed, bowl - saddle))

    @property
    def bend_sigma_per_m(self) -> tuple[float, float, float]:
        """Standard deviations of the bend of `board` along X, mixed and along Y."""
        along, mixed, down = self.distortion.bend_sigma_per_m
        doubt = self.bowl_doubt_per_m
        bowl = _BOWL_PER_M * doubt / float(np.hypot(_BOWL_PER_M, doubt))
        return float(np.hypot(along, bowl)), mixed, float(np.hypot(down, bowl))

    @property
    def depths_m(self) -> list[float]:
        """Depth of the board on the left axis, of each of `frames`."""
        depths_m: list[float] = self.geometry.depths_m[self.frames].tolist()
        return depths_m


def align_views(
    captures: Captures, fields: Fields, setup: Setup, progress: Progress | None
) -> AlignedMatches:
    """Find places on the board, and from these the anchors, the rectification and the geometry."""
    matches = find_matches(captures, fields, progress)
    return align_matches(matches, captures.distances_m, fields.radius_px, setup)


def align_matches(
    matches: Matches,
    distances_m: Sequence[float],
    field_radius_px: float,
    setup: Setup,
    before: AlignedMatches | None = None,
) -> AlignedMatches:
    """Find distortion, anchors, rectification and geometry from places on the board.

    `before` is the alignment by nearly the same places, to start with. As printed, lenses have no
    distortion, anchors are by Eq. S6, and medians of all frames rectify, as in Eq. S7.
    """
    optics = setup.design.optics
    if setup.as_printed:
        anchors = find_anchors(matches)._replace(method="least shift")
        distortion = no_distortion(anchors, distances_m, field_radius_px)
    else:
        distortion, anchors = find_distortion(
            matches,
            find_anchors(matches) if before is None else before.anchors,
            distances_m,
            focal_length_px=optics.focal_length_px,
            field_radius_px=field_radius_px,
            start=None if before is None else before.distortion,
        )
    straight = distortion.removed_from(matches)
    rectification = find_rectification(straight, anchors, by_medians=setup.as_printed)
    geometry = find_geometry(
        straight,
        anchors,
        rectification,
        distances_m,
        optics,
        fit_ruler=setup.fit_ruler,
        distorts=max(distortion.largest_px(0), distortion.largest_px(1)) > _DISTORTION_PX,
    )
    return AlignedMatches(matches, distortion, anchors, rectification, geometry)


def bowl_doubt_per_m(coma_px: float, lenses: LensMaps) -> float:
    """Standard deviation of the bowl of a board that places show, by errors of the lenses.

    `coma_px` is the coma at the field radius, as shift of the light.
    """
    curvature_dpt = np.mean([lenses.focus_left_dpt[2:], lenses.focus_right_dpt[2:]])
    return float(np.hypot(_BOWL_PER_COMA * coma_px, _BOWL_PER_DPT * curvature_dpt))


def without_blur_shift(alignment: AlignedMatches, rig: Rig) -> Matches:
    """Matches as views would give them whose blur does not change over the field.

    `alignment` has the places as they were found, and the axes and depths they led to; `rig` the
    focus on the axis and over the field.
    """
    lenses, optics = lens_maps_of(rig), rig.optics
    matches, distortion = alignment.matches, alignment.distortion
    depths_m = np.where(
        np.isfinite(alignment.geometry.depths_m), alignment.geometry.depths_m, np.inf
    )

    def shift_and_blur(
        places_px: FloatArray, camera: int, frame: int
    ) -> tuple[FloatArray, FloatArray]:
        x, y = ((places_px - distortion.centre_px(camera)) / distortion.field_radius_px).T
        at = (camera, x, y, 1 / depths_m[frame], optics)
        blur = lenses.blur_px2(*at)
        return lenses.blur_shift_px(*at).T, 0.5 * (blur[0] + blur[2])

    def changed(pair: PairMatches, cameras: tuple[int, int]) -> PairMatches:
        first, blur_first = shift_and_blur(pair.first_px, cameras[0], pair.first)
        second, blur_second = shift_and_blur(pair.second_px, cameras[1], pair.second)
        detail = np.nan_to_num(pair.detail_per_px2)

        def share(blur_px2: FloatArray) -> FloatArray:
            # A wave k is shifted by 1 - k² V / 2 of the shift of the light.
            return (1 - np.minimum(detail * blur_px2, _MOST_DETAIL) / 2)[:, np.newaxis]

        return pair._replace(
            first_px=pair.first_px - first * share(blur_first),
            second_px=pair.second_px - second * share(blur_second),
        )

    return matches.changed(changed)


def draft_rig(
    setup: Setup,
    alignment: AlignedMatches,
    fields: Fields,
    noise: Noise,
    frame_shape: tuple[int, int],
) -> Rig:
    """Make a rig that can split frames; its focus and its depth equation are not tuned yet.

    The views are cut from the fields.
    """
    geometry, rectification = alignment.geometry, alignment.rectification
    optics = setup.design.optics.replace(baseline_m=geometry.baseline_m, disparity_offset_px=0.0)
    calibration = Calibration(
        anchor_left_px=geometry.anchor_left_px,
        anchor_right_px=geometry.anchor_right_px,
        crop_rows_px=1,
        crop_cols_px=1,
        rectify_scale=rectification.scale,
        rectify_angle_rad=rectification.angle_rad,
        rectify_shift_y_px=0.0,  # the anchors of the geometry include it
        baseline_angle_rad=rectification.baseline_angle_rad,
        frame_rows_px=frame_shape[0],
        frame_cols_px=frame_shape[1],
        noise_read=noise.read,
        noise_gain=noise.gain,
        noise_column=noise.column,
        bayer=None if setup.sensor is None else setup.sensor.order,
        channel_gains=None if setup.sensor is None else setup.sensor.gains,
        virtual_baselines_m=(0.1 * optics.baseline_m,),
        a_cubic_m_px=(0.0, 0.0, 0.0, 0.0),
        b_cubic_m=(0.0, 0.0, 0.0, 0.0),
        tuned_without_noise=True,
        lenses=LensMaps(
            field_radius_px=alignment.distortion.field_radius_px,
            distortion_left=alignment.distortion.left,
            distortion_right=alignment.distortion.right,
        ),
        provenance=setup.provenance,
    )
    largest_disparity_px = geometry.focal_baseline_px_m / float(np.nanmin(geometry.depths_m))
    rows, cols = largest_crop(fields, calibration, frame_shape, largest_disparity_px)
    calibration = calibration.replace(crop_rows_px=rows, crop_cols_px=cols)
    return Rig(name=setup.name, optics=optics, calibration=calibration)


def with_lenses(rig: Rig, **values: Any) -> Rig:
    """Rig with other values of its lens maps."""
    lenses = lens_maps_of(rig).replace(**values)
    return rig.replace(calibration=calibration_of(rig).replace(lenses=lenses))


def lens_maps_of(rig: Rig) -> LensMaps:
    """Lens maps of a rig that has some."""
    lenses = calibration_of(rig).lenses
    if lenses is None:
        raise CalibrationError(f"the rig {rig.name!r} has no maps of its lenses.")
    return lenses


def calibration_of(rig: Rig) -> Calibration:
    """Calibration of a rig that has one."""
    if rig.calibration is None:
        raise CalibrationError(f"the rig {rig.name!r} has no calibration.")
    return rig.calibration
