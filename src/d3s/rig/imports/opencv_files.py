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
    both = next((one for one in zip(sources, tables, strict=True) if _marks(one[1])), None)
    if both is not None:
        source, table = both
        cameras = [
            _camera(source, {**everything, **table}, mark, shape, fisheye)
            for mark in _marks(table) or ()
        ]
    else:
        single = [one for one in zip(sources, tables, strict=True) if _mono(one[1]) is not None]
        if len(single) != 2:
            cameras_in_words = "one camera" if len(single) == 1 else f"{len(single)} cameras"
            raise sources[0].error(
                f"has {cameras_in_words} alone, and a stereo camera has two. Give the file "
                "of the left camera, the file of the right one, and the file with R and T."
            )
        cameras = [_camera(source, table, None, shape, fisheye) for source, table in single]
    rotation, translation = _placement(sources, everything)
    return CameraPair(
        cameras=(cameras[0], cameras[1]),
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


def _side_matrix(values: Mapping[str, Any], mark: str) -> Any:
    names = _sided(_MATRIX, mark)
    return next((values[name] for name in names if _is_matrix(values.get(name))), None)


def _marks(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Marks of the left and the right camera in names such as M1 and M2; None if not both are."""
    for marks in _SIDES:
        if all(_side_matrix(values, mark) is not None for mark in marks):
            return marks
    return None


def _mono(values: Mapping[str, Any]) -> Any:
    return next((values[name] for name in _MATRIX if _is_matrix(values.get(name))), None)


def _camera(
    source: CalibrationFile,
    values: Mapping[str, Any],
    mark: str | None,
    shape: tuple[int, int] | None,
    fisheye: bool,
) -> RawCamera:
    """Camera of a mark, or the only one of a file."""
    if mark is None:
        found, distortion = _mono(values), first_of(values, _DISTORTION)
    else:
        found = _side_matrix(values, mark)
        distortion = first_of(values, _sided(_DISTORTION, mark))
    if distortion is None:
        raise source.error("has no distortion coefficients. Write zeros if there is none.")
    coefficients = numbers(distortion)
    if coefficients is None:
        raise source.error("has distortion coefficients that are no numbers.")
    flag = numbers(first_of(values, _FISHEYE))
    return source.camera(
        "the camera matrix",
        source.matrix("camera matrix", found, (3, 3)),
        size=_size(source, values, shape),
        distortion=coefficients,
        fisheye=fisheye or bool(flag and flag[0]),
    )


def _size(
    source: CalibrationFile, values: Mapping[str, Any], shape: tuple[int, int] | None
) -> Sequence[Any]:
    if shape is not None:
        return shape[1], shape[0]
    size = first_of(values, _SIZE)
    if size is not None:
        return list(size)
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
