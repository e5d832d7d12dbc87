"""Lens files: the errors of both lenses of a camera as TOML."""

import os
from typing import Self

from pydantic import Field

from d3s.atomic import write_text
from d3s.document import DocumentKind
from d3s.errors import SceneError
from d3s.lab.twin.geometry import ScenePart
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors

_HEADER = """\
# The errors of two lenses for D3S; values that are missing are those of a perfect lens. Use it with
#     d3s simulate --lens FILE.toml
# Errors that grow towards the edge of the field have their value at field_radius_px.

"""

LENS_FILE = DocumentKind(noun="lens file", schema_version=1, header=_HEADER, error=SceneError)


class LensFile(ScenePart):
    """Errors of the left and the right lens, as a file."""

    left: LensErrors = Field(default=PERFECT_LENS, description="the errors of the left lens")
    right: LensErrors = Field(default=PERFECT_LENS, description="the errors of the right lens")

    @property
    def lenses(self) -> tuple[LensErrors, LensErrors]:
        """Both lenses, as `simulate` takes them."""
        return self.left, self.right

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a lens file.

        Raises
        ------
        SceneError
            Names the file and every field that is unknown or wrong.
        """
        try:
            return cls(**LENS_FILE.read(path))
        except SceneError as error:
            raise SceneError(*error.problems, path=path) from error.__cause__

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the file atomically; `LensFile.load` returns equal lenses.

        Raises
        ------
        OutputError
            If the file cannot be written, or exists with other content and `overwrite` is False.
        """
        write_text(path, LENS_FILE.format(self.model_dump()), overwrite=overwrite)
