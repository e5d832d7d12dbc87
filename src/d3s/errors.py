"""Exceptions of the library, all derived from `D3SError`, and its warning."""

from collections.abc import Mapping
from os import PathLike, fspath


class D3SError(Exception):
    """Base class of all errors that D3S raises on purpose; the text is meant for the user."""


class RecordError(D3SError, ValueError):
    """Wrong values of a record or of its file; the text lists every wrong field.

    Parameters
    ----------
    *problems
        One line for each wrong field.
    path
        File that contains the values, if there is one.
    """

    def __init__(self, *problems: str, path: str | PathLike[str] | None = None) -> None:
        super().__init__(*problems)
        self.problems = problems
        self.path = None if path is None else fspath(path)

    def __str__(self) -> str:
        if self.path is None:
            return "\n".join(self.problems)
        if len(self.problems) == 1:
            return f"{self.path}: {self.problems[0]}"
        return "\n  ".join((f"{self.path}: {len(self.problems)} problems", *self.problems))


class RigError(RecordError):
    """Wrong values of a rig or of a rig file."""


class SceneError(RecordError):
    """Wrong values of a scene, a sensor or a recipe."""


class OptionsError(RecordError):
    """Wrong options of a method or of a sweep."""


class DesignError(RecordError):
    """Wrong values of a camera to be designed, of its light or of a wish."""


class CapturesError(RecordError):
    """Captures (frames or distances) that cannot be calibrated."""


class InputError(D3SError, ValueError):
    """Argument that a function cannot use."""


def install_command(extra: str) -> str:
    """Command that installs an extra, from where this package was installed.

    Packages that came from an index have no record of their address; for those of a clone or of a
    file, an index may have no d3s.
    """
    import importlib.metadata
    import json

    try:
        text = importlib.metadata.distribution("d3s").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return f"pip install '.[{extra}]' in a copy of d3s"
    if text is None:
        return f"pip install 'd3s[{extra}]'"
    address = json.loads(text)
    if "dir_info" not in address:
        return f"pip install 'd3s[{extra}] @ {address['url']}'"
    editable = "-e " if address["dir_info"].get("editable") else ""
    return f"pip install {editable}'.[{extra}]' in {address['url'].removeprefix('file://')}"


class MissingPackageError(InputError):
    """Package of an extra that is not installed; the text ends with the command that does.

    Parameters
    ----------
    words
        What needs which package.
    extra
        Extra of d3s that has it.
    """

    def __init__(self, words: str, extra: str) -> None:
        super().__init__(f"{words}: {install_command(extra)}.")


class CalibrationError(D3SError):
    """Calibration without a usable result.

    Parameters
    ----------
    words
        Text of the error.
    report
        `Report` of the results up to the failure; None if a single step was called.
    left_out
        Reason for each frame that the step could not use, by frame number, if the text does not
        name these frames.
    """

    def __init__(
        self, words: str, report: object = None, *, left_out: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(words)
        self.report = report
        self.left_out = dict(left_out or {})


class CameraError(D3SError):
    """Camera that is not there, was lost, or does not do what it is asked."""


class OutputError(D3SError, OSError):
    """Result that could not be written, or would have replaced an existing file."""


class DepthWarning(UserWarning):
    """Likely cause of a poor depth map; `DepthMap.warnings` has the same sentences.

    `warnings.filterwarnings("ignore", category=d3s.DepthWarning)` silences them.
    """
