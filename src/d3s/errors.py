"""What can go wrong, by kind. Everything the library raises on purpose is a `D3SError`."""

from collections.abc import Mapping
from os import PathLike, fspath


class D3SError(Exception):
    """Base of all errors that D3S raises on purpose; its text is meant for the user."""


class RecordError(D3SError, ValueError):
    """Named values, or a file of them, that cannot be right: every wrong field is in the text.

    `problems` has one line for each wrong field; `path` is the file they are in, if there is one.
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
    """A rig, or a rig file, that cannot be right."""


class SceneError(RecordError):
    """A scene, a sensor or a recipe that cannot be rendered."""


class OptionsError(RecordError):
    """Options of an estimator, or of a sweep, that cannot be right."""


class CapturesError(RecordError):
    """Frames, or their distances, that no calibration can start from."""


class InputError(D3SError, ValueError):
    """An argument that a function cannot work with."""


class CalibrationError(D3SError):
    """A calibration that came to nothing.

    `report` is the `Report` of what was found until then; None where a single step was called.
    `left_out` has the numbers of the frames that the step could not use, and why, where the text
    does not name them.
    """

    def __init__(
        self, words: str, report: object = None, *, left_out: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(words)
        self.report = report
        self.left_out = dict(left_out or {})


class OutputError(D3SError, OSError):
    """A result that could not be written, or that would have replaced a file of the user's."""
