"""Folders of simulated files: a recipe in, the same bytes out every time.

The recipe is written first, `distances.csv` last. Files are written atomically, so a run that was
killed can be resumed.
"""

import csv
import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder, write_text
from d3s.batch.running import Workers, checked_workers, run
from d3s.errors import OutputError, SceneError
from d3s.files.arrays import write_npz
from d3s.files.images import list_images, write_image
from d3s.files.raw import named, open_file
from d3s.lab.twin.pair import Pair, simulate
from d3s.lab.twin.random_scene import RandomScene
from d3s.lab.twin.raw import RawFrame, RawLayout, simulate_raw
from d3s.lab.twin.recipe import Recipe, RecipeScene
from d3s.lab.twin.scenes import DepthMapScene, Layer, Layered
from d3s.lab.twin.textures import Photo
from d3s.types import Progress
from d3s.version import __version__

RECIPE_NAME = "recipe.toml"
DISTANCES_NAME = "distances.csv"

# Arrays of the truth of a pair, by attribute of `Pair`.
PAIR_TRUTH = (
    "depth_m",
    "disparity_px",
    "occluded",
    "blur_left_px",
    "blur_right_px",
    "all_in_focus",
)

_BLOCK_BYTES = 1 << 20


def render_folder(
    recipe: Recipe,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    workers: Workers = 1,
    progress: Progress | None = None,
) -> list[Path]:
    """Render a recipe into a folder, and keep files of an earlier run of the same recipe.

    Parameters
    ----------
    recipe
        Recipe to render. It is written to the folder as recipe.toml, with digests of its input
        files. If the recipe has digests already, the input files must match them.
    folder
        Output folder, created if the recipe can be rendered.
    overwrite
        Remove the files of this recipe and of the recipe in the folder first.
    workers
        Number of processes to share the frames among; None for one for each core. The bytes of the
        files do not depend on it.
    progress
        Called with the number of finished frames, and of all frames.

    Returns
    -------
    list of Path
        Files that were written.

    Raises
    ------
    OutputError
        If a file cannot be written, or the folder holds files of another recipe.
    SceneError, InputError
        If the recipe cannot be rendered. Nothing is written then, except before a random scene that
        fails later in the series.
    """
    # Another version may give other bytes, so it does not resume a run of this version.
    recipe = _with_digests(recipe).replace(d3s_version=__version__)
    place, text = Path(folder), recipe.text()
    resumes = not overwrite and _is_begun(recipe, place)
    frames = [_RecipeFrame(recipe, number) for number in _riskiest_first(recipe)]
    missing = [frame for frame in frames if not (resumes and frame.is_in(place))]
    # Render the riskiest frames before the folder is touched: they show errors of the recipe.
    ready = [frame.render() for frame in missing[:2]]
    make_folder(place)
    if overwrite:
        _clear(recipe, place)
    if not resumes:
        write_text(place / RECIPE_NAME, text)
    written = [] if resumes else [place / RECIPE_NAME]
    report = progress or (lambda done, total: None)
    done = len(frames) - len(missing)
    report(done, len(frames))
    for frame, rendered in zip(missing, ready, strict=False):
        written += frame.write(rendered, place)
        done += 1
        report(done, len(frames))
    work = partial(_render_frame, os.path.abspath(os.fsdecode(place)))  # noqa: PTH100
    numbers = [frame.number for frame in missing[2:]]
    with closing(run(work, numbers, checked_workers(workers, len(numbers)))) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            written += [place / name for name in outcome.result]
            done += 1
            report(done, len(frames))
    if recipe.distances_m is not None:
        written += [] if _exists(place / DISTANCES_NAME) else [place / DISTANCES_NAME]
        write_text(place / DISTANCES_NAME, _distances_text(recipe))
    return sorted(written)


def _render_frame(folder: str, number: int) -> list[str]:
    """Render one frame of the recipe in a folder, here or in a worker; names of its files."""
    frame = _RecipeFrame(Recipe.load(Path(folder, RECIPE_NAME)), number)
    return [path.name for path in frame.write(frame.render(), Path(folder))]


@dataclass(frozen=True)
class _RecipeFrame:
    """One frame of a recipe, and its files."""

    recipe: Recipe
    number: int

    @property
    def image_names(self) -> tuple[str, ...]:
        """Files of the left and right image, or of the raw image; tables list the first."""
        suffix = self.recipe.images
        if self.recipe.kind == "pair":
            return f"{self._prefix}left.{suffix}", f"{self._prefix}right.{suffix}"
        return (f"{self._digits or 'raw'}.{suffix}",)

    @property
    def names(self) -> tuple[str, ...]:
        """All files of the frame."""
        if self.recipe.truth == "npz":
            return (*self.image_names, f"{self._prefix}truth.npz")
        return (*self.image_names, *(f"{self._prefix}{name}.pfm" for name in PAIR_TRUTH))

    @property
    def _digits(self) -> str:
        if not self.recipe.is_series:
            return ""
        return f"{self.number:0{max(3, len(str(self.recipe.frame_count - 1)))}d}"

    @property
    def _prefix(self) -> str:
        return f"{self._digits}_" if self._digits else ""

    def is_in(self, folder: Path) -> bool:
        """Whether all files of the frame exist."""
        return all(_exists(folder / name) for name in self.names)

    def render(self) -> Pair | RawFrame:
        """Simulate the frame."""
        recipe = self.recipe
        options: dict[str, Any] = {
            "noise": recipe.sensor,
            "seed": recipe.seed_of(self.number),
            "psf": recipe.psf,
            "wavelength_m": recipe.wavelength_m,
            "mounts": recipe.mounts,
            "lenses": recipe.lenses,
        }
        scene = recipe.scene_of(self.number)
        if recipe.kind == "pair":
            return simulate(scene, recipe.rig, shape=recipe.shape, **options)
        return simulate_raw(scene, recipe.rig, layout=recipe.layout or RawLayout(), **options)

    def write(self, rendered: Pair | RawFrame, folder: Path) -> list[Path]:
        """Write the files of the frame; return their paths."""
        if isinstance(rendered, Pair):
            images = [rendered.left, rendered.right]
            truth = {name: getattr(rendered, name) for name in PAIR_TRUTH}
        else:
            images, truth = [rendered.image], rendered.truth()
        paths = [folder / name for name in self.names]
        for path, image in zip(paths, images, strict=False):
            write_image(path, image)
        if self.recipe.truth == "npz":
            write_npz(paths[-1], **truth)
        else:
            for path, array in zip(paths[len(images) :], truth.values(), strict=True):
                write_image(path, array.astype("float32"))
        return paths


def _with_digests(recipe: Recipe) -> Recipe:
    """Recipe with digests of its input files; raises if the digests have changed."""
    found = {name: _digest(name) for name in sorted(set(_inputs(recipe.scene)))}
    expected = recipe.input_sha256
    if expected is None:
        return recipe.replace(input_sha256=found) if found else recipe
    changed = [name for name in found if expected.get(name) != found[name]]
    if changed:
        raise SceneError(
            *(
                f"{name} is not what the recipe was made with: its SHA-256 is {found[name]}. Get "
                "the file back, or take input_sha256 out of the recipe to use this one."
                for name in changed
            )
        )
    return recipe


def _inputs(scene: RecipeScene) -> Iterator[str]:
    """Input files of a scene; for random scenes, folders of photos."""
    if isinstance(scene, RandomScene):
        yield from scene.photos
    elif isinstance(scene, DepthMapScene):
        yield from (scene.image, scene.depth_m)
    else:
        for part in scene.layers if isinstance(scene, Layered) else (scene,):
            if isinstance(part.texture, Photo):
                yield part.texture.file
            if isinstance(part, Layer) and part.mask is not None:
                yield part.mask


def _digest(name: str) -> str:
    """SHA-256 of a file; of a folder, that of the names and sizes of its images."""
    with named(name):
        if Path(name).is_dir():
            listing = "".join(f"{path.name} {path.stat().st_size}\n" for path in list_images(name))
            return hashlib.sha256(os.fsencode(listing)).hexdigest()
        digest = hashlib.sha256()
        with open_file(name) as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        return digest.hexdigest()


def _riskiest_first(recipe: Recipe) -> list[int]:
    """Numbers of all frames; of a series of planes, the most blurred first, which may fail."""
    numbers = list(range(recipe.frame_count))
    if recipe.distances_m is None:
        return numbers
    # The blur is linear in 1/Z, so it is largest at the nearest or farthest distance.
    by_distance = sorted(numbers, key=recipe.distances_m.__getitem__)
    ends = list(dict.fromkeys((by_distance[0], by_distance[-1])))
    return ends + [number for number in numbers if number not in ends]


def _is_begun(recipe: Recipe, folder: Path) -> bool:
    """Whether the folder holds an earlier run of this recipe; raises if it holds another."""
    path = folder / RECIPE_NAME
    if not _exists(path):
        present = [name for name in _all_names(recipe) if _exists(folder / name)]
        if present:
            raise OutputError(f"{folder} holds {present[0]} and no {RECIPE_NAME}. {_REMEDY}")
        return False
    try:
        same = Recipe.load(path) == recipe
    except SceneError as error:
        raise OutputError(f"{path} is not a recipe that can be read. {_REMEDY}") from error
    if not same:
        raise OutputError(f"{folder} holds the files of another recipe. {_REMEDY}")
    return True


_REMEDY = (
    "Choose another folder, or allow its files to be replaced: --force on the command line, "
    "overwrite=True in Python."
)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)  # unlike Path.exists, never raises


def _all_names(recipe: Recipe) -> list[str]:
    names = [
        name for number in range(recipe.frame_count) for name in _RecipeFrame(recipe, number).names
    ]
    return names if recipe.distances_m is None else [*names, DISTANCES_NAME]


def _clear(recipe: Recipe, folder: Path) -> None:
    """Remove the files of this recipe and of the recipe in the folder, recipe.toml last.

    Otherwise a killed run could leave frames of the old recipe beside the new recipe, and the next
    run would keep them.
    """
    path = folder / RECIPE_NAME
    names = _all_names(recipe)
    with suppress(SceneError):  # no recipe, or another file of that name
        names += _all_names(Recipe.load(path))
    for name in (*names, RECIPE_NAME):
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"{folder / name} cannot be removed: {error.strerror}. Choose another folder."
            ) from error


def _distances_text(recipe: Recipe) -> str:
    """Table for a calibration: one row per frame, with the name of its first image."""
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(("file", "distance_m"))
    for number, distance_m in enumerate(recipe.typed_distances_m):
        table.writerow((_RecipeFrame(recipe, number).image_names[0], repr(distance_m)))
    return buffer.getvalue()
