"""Folders of simulated files: a recipe in, the same bytes out every time.

The recipe is written first, `distances.csv` last. Files are written atomically, so a run that was
killed can be resumed.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing, suppress
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


def render_folder(
    recipe: Recipe,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    workers: Workers = 1,
    progress: Progress | None = None,
) -> list[Path]:
    """Render a recipe into a folder, and keep files of an earlier run of the same recipe.

    The recipe is written with digests of its input files; those that it has already must match.
    `overwrite` first removes the files of this recipe and of the recipe in the folder. The bytes of
    the files do not depend on `workers`, the number of processes, None for one for each core.
    `progress` is called with the number of finished frames, and of all frames. Returns the files
    that were written.

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
    missing = [
        number
        for number in _riskiest_first(recipe)
        if not (resumes and all(_exists(place / name) for name in _names(recipe, number)))
    ]
    # Render the riskiest frames before the folder is touched: they show errors of the recipe.
    ready = [_render(recipe, number) for number in missing[:2]]
    make_folder(place)
    if overwrite:
        _clear(recipe, place)
    written = []
    if not resumes:
        write_text(place / RECIPE_NAME, text)
        written.append(RECIPE_NAME)
    done, total = recipe.frame_count - len(missing), recipe.frame_count
    report = progress or (lambda done, total: None)
    report(done, total)
    for number, rendered in zip(missing, ready, strict=False):
        written += _write(recipe, number, rendered, place)
        done += 1
        report(done, total)
    work = partial(_render_frame, os.path.abspath(os.fsdecode(place)))  # noqa: PTH100
    with closing(run(work, missing[2:], checked_workers(workers, len(missing[2:])))) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            written += outcome.result
            done += 1
            report(done, total)
    if recipe.distances_m is not None:
        written += [] if _exists(place / DISTANCES_NAME) else [DISTANCES_NAME]
        write_text(place / DISTANCES_NAME, _distances_text(recipe))
    return sorted(place / name for name in written)


def _render_frame(folder: str, number: int) -> list[str]:
    """Render one frame of the recipe in a folder, here or in a worker; names of its files."""
    recipe = Recipe.load(Path(folder, RECIPE_NAME))
    return _write(recipe, number, _render(recipe, number), Path(folder))


def _digits(recipe: Recipe, number: int) -> str:
    if not recipe.is_series:
        return ""
    return f"{number:0{max(3, len(str(recipe.frame_count - 1)))}d}"


def _image_names(recipe: Recipe, number: int) -> tuple[str, ...]:
    """Files of the left and right image, or of the raw image; tables list the first."""
    digits = _digits(recipe, number)
    if recipe.kind == "raw":
        return (f"{digits or 'raw'}.{recipe.images}",)
    prefix = f"{digits}_" if digits else ""
    return f"{prefix}left.{recipe.images}", f"{prefix}right.{recipe.images}"


def _names(recipe: Recipe, number: int) -> tuple[str, ...]:
    """All files of a frame."""
    digits = _digits(recipe, number)
    names = ("truth.npz",) if recipe.truth == "npz" else tuple(f"{name}.pfm" for name in PAIR_TRUTH)
    return (
        *_image_names(recipe, number),
        *(f"{digits}_{name}" if digits else name for name in names),
    )


def _render(recipe: Recipe, number: int) -> Pair | RawFrame:
    options: dict[str, Any] = {
        "noise": recipe.sensor,
        "seed": (recipe.seed, number),
        "psf": recipe.psf,
        "wavelength_m": recipe.wavelength_m,
        "mounts": recipe.mounts,
        "lenses": recipe.lenses,
    }
    scene = recipe.scene_of(number)
    if recipe.kind == "pair":
        return simulate(scene, recipe.rig, shape=recipe.shape, **options)
    return simulate_raw(scene, recipe.rig, layout=recipe.layout or RawLayout(), **options)


def _write(recipe: Recipe, number: int, rendered: Pair | RawFrame, folder: Path) -> list[str]:
    """Write the files of a frame; return their names."""
    if isinstance(rendered, Pair):
        images = [rendered.left, rendered.right]
        truth = {name: getattr(rendered, name) for name in PAIR_TRUTH}
    else:
        images, truth = [rendered.image], rendered.truth()
    names = list(_names(recipe, number))
    if recipe.truth == "pfm":
        images += [array.astype("float32") for array in truth.values()]
    for name, image in zip(names, images, strict=False):
        write_image(folder / name, image)
    if recipe.truth == "npz":
        write_npz(folder / names[-1], **truth)
    return names


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
            for block in iter(partial(file.read, 1 << 20), b""):
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
    names = [name for number in range(recipe.frame_count) for name in _names(recipe, number)]
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
    rows = [
        f"{_image_names(recipe, number)[0]},{distance_m!r}\n"
        for number, distance_m in enumerate(recipe.typed_distances_m)
    ]
    return "".join(("file,distance_m\n", *rows))
