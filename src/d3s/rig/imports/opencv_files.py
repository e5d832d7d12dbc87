"""Calibrations that a program saved with OpenCV: one stereo file, or several that belong together.

OpenCV has no names of its own for these values. The names of its samples are known (`M1`, `D1`,
`M2`, `D2`, `R`, `T`, `R1`, `P1`, ...; `camera_matrix` in a file for each camera), and others that
are usual. The unit of `T` is that of the calibration board.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from d3s.rig.imports.pair import CameraPair, Projections
from d3s.rig.imports.source import CalibrationFile, first_of, numbers
from d3s.rig.stereo_camera import RawCamera
from d3s.types import FloatArray

# Names without underscores and in lower case. Those of a camera are followed or led by its side.
_MATRIX = "m", "k", "cameramatrix", "cammatrix", "mtx", "cm", "intrinsic", "intrinsics"
_DISTORTION = "d", "distcoeffs", "distcoeff", "dist", "distortion", "distortioncoefficients"
_ROTATION = "r", "rotation", "rotationmatrix", "rot", "rmat"
_TRANSLATION = "t", "translation", "translationvector", "trans", "tvec"
_SIZE = "imagesize", "size", "resolution", "framesize", "imgsize"
_WIDTHS = ("imagewidth", "imageheight"), ("width", "height")
_FISHEYE = "fisheye", "fisheyemodel", "isfisheye"
_SIDES = ("1", "2"), ("l", "r"), ("left", "right"), ("0", "1")


def is_opencv(source: CalibrationFile) -> bool:
    """Whether a file has values of a camera, or of how two cameras stand."""
    values = _plain(source.values)
    names = {name for marks in _SIDES for mark in marks for name in _sided(_MATRIX, mark)}
    has_camera = any(_is_matrix(values.get(name)) for name in {*names, *_MATRIX[1:]})
    return has_camera or first_of(values, _TRANSLATION) is not None


def read_opencv(
    sources: Sequence[CalibrationFile], *, shape: tuple[int, int] | None, fisheye: bool
) -> CameraPair:
    """Read one stereo file; or the left camera, the right camera, and the file that has R and T.

    The rows and columns of the pictures, and that the distortion is that of `cv2.fisheye`, are for
    files that do not say it.
    """
    tables = [_plain(source.values) for source in sources]
    everything: dict[str, Any] = {}
    for table in reversed(tables):
        everything |= table
    found = [
        (source, {**everything, **table}, mark)
        for source, table in zip(sources, tables, strict=True)
        for mark in _marks(table)
    ][:2] or [
        (source, table, "")
        for source, table in zip(sources, tables, strict=True)
        if _matrix(table, "") is not None
    ]
    if len(found) != 2:
        alone = "one camera" if len(found) == 1 else f"{len(found)} cameras"
        raise sources[0].error(
            f"has {alone} alone, and a stereo camera has two. Give the file "
            "of the left camera, the file of the right one, and the file with R and T."
        )
    left, right = (_camera(*one, shape, fisheye) for one in found)
    rotation, translation = _placement(sources, everything)
    return CameraPair(
        cameras=(left, right),
        rotation=rotation,
        translation=translation,
        projections=_projections(sources[-1], everything),
        unit_is_known=False,
        name=sources[0].path.stem[:100] or "stereo camera",
    )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by their names in lower case, without underscores; tables within are spread."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        key = re.sub(r"[_\- ]", "", str(name)).lower()
        if isinstance(value, Mapping) and "data" not in value:
            inner = _plain(value)
            found |= {f"{key}{one}": part for one, part in inner.items()}
            # R and T of a table such as `stereo:` or `extrinsics:` need no such name.
            found |= {one: part for one, part in inner.items() if one not in found}
        else:
            found[key] = value
    return found


def _sided(names: Iterable[str], mark: str) -> list[str]:
    return [word for name in names for word in (name + mark, mark + name)]


def _is_matrix(value: Any) -> bool:
    found = numbers(value)
    return found is not None and len(found) == 9


def _matrix(values: Mapping[str, Any], mark: str) -> Any:
    """Matrix of a camera of this mark, empty for the only one of a file; None if there is none."""
    names = _sided(_MATRIX, mark)
    return next((values[name] for name in names if _is_matrix(values.get(name))), None)


def _marks(values: Mapping[str, Any]) -> Sequence[str]:
    """Marks of the left and the right camera in names such as M1 and M2; none if not both are."""
    is_both = (all(_matrix(values, mark) is not None for mark in marks) for marks in _SIDES)
    return next((marks for marks, both in zip(_SIDES, is_both, strict=True) if both), ())


def _camera(
    source: CalibrationFile,
    values: Mapping[str, Any],
    mark: str,
    shape: tuple[int, int] | None,
    fisheye: bool,
) -> RawCamera:
    """Camera of a mark, or the only one of a file."""
    distortion = first_of(values, _sided(_DISTORTION, mark))
    if distortion is None:
        raise source.error("has no distortion coefficients. Write zeros if there is none.")
    coefficients = numbers(distortion)
    if coefficients is None:
        raise source.error("has distortion coefficients that are no numbers.")
    flag = numbers(first_of(values, _FISHEYE))
    return source.camera(
        "the camera matrix",
        source.matrix("camera matrix", _matrix(values, mark), (3, 3)),
        size=_size(source, values, shape),
        distortion=coefficients,
        fisheye=fisheye or bool(flag and flag[0]),
    )


def _size(source: CalibrationFile, values: Mapping[str, Any], shape: tuple[int, int] | None) -> Any:
    if shape is not None:
        return shape[1], shape[0]
    size = first_of(values, _SIZE)
    if size is not None:
        return size
    for width, height in _WIDTHS:
        if width in values and height in values:
            return values[width], values[height]
    raise source.error(
        "does not say the size of the pictures. Add image_width and image_height to it; or say "
        "--shape ROWSxCOLS on the command line, shape=(rows, cols) in Python."
    )


def _placement(
    sources: Sequence[CalibrationFile], values: Mapping[str, Any]
) -> tuple[FloatArray, FloatArray]:
    """Rotation (3, 3) and translation (3,) from the left to the right camera."""
    import cv2

    names = " and ".join(source.path.name for source in sources)
    turn, shift = first_of(values, _ROTATION), first_of(values, _TRANSLATION)
    if turn is None or shift is None:
        raise sources[-1].error(
            f"has no R and T from the left camera to the right one (looked in {names}). Add the "
            "file that stereoCalibrate's results were saved to."
        )
    angles = numbers(turn)
    if angles is not None and len(angles) == 3:  # a rotation vector
        rotation = np.asarray(cv2.Rodrigues(np.array(angles))[0], dtype=np.float64)
    else:
        rotation = sources[-1].matrix("R", turn, (3, 3))
    return rotation, sources[-1].matrix("T", shift, (3,))


def _projections(source: CalibrationFile, values: Mapping[str, Any]) -> Projections | None:
    """Rectification of the file; None if it has none, or not all of it."""
    found = [values.get(name) for name in ("r1", "r2", "p1", "p2")]
    if any(one is None for one in found):
        return None
    turns = source.matrix("R1", found[0], (3, 3)), source.matrix("R2", found[1], (3, 3))
    views = source.matrix("P1", found[2], (3, 4)), source.matrix("P2", found[3], (3, 4))
    return Projections(turns, views)
