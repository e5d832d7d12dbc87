"""`d3s densify`: holes of depth maps filled in, and frames of a still camera fused."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.depth import max_sigma_m
from d3s.cli.options import Telling
from d3s.cli.output import check_places, progress_bar, say_json

if TYPE_CHECKING:
    from d3s.estimate import DepthMap

_ENDING = "_dense.npz"  # of the files that are written


def densify(
    files: list[Path],
    *,
    output: Path | None = None,
    max_sigma: str = "5cm",
    min_confidence: float | None = None,
    fuse: bool = False,
    smooth: bool = False,
    marigold: Path | None = None,
    telling: Telling,
) -> None:
    r"""Fill holes of depth maps as far as they can be known; the rest stays open.

    Measured depths stay as they are. Filled ones have the flag FILLED and a sigma that contains the
    chance of another surface. Writes NAME_dense.npz for each file; d3s convert makes other formats
    and meshes of it.

    Options:
        files (DEPTH.npz...): Depth maps of d3s depth, as .npz files. Those with --option
            min_confidence=0 have most to go by.
        output: Folder for the results; beside the files if left.
        max_sigma (LENGTH|all): Largest sigma of a filled depth, such as 3cm. Holes that cannot be
            known better stay open; all fills every hole.
        min_confidence: Least confidence of depths that count as measured; 0.5 if left, or what the
            file was made with.
        fuse: The files are frames of a still camera, in order: fuse them first. One result.
        smooth: Average depths with their neighbours on the same surface, at the end; measured ones
            change too.
        marigold (FOLDER): Fill all holes by Marigold-DC, a diffusion network, with the weights of
            this folder: pip install 'd3s\[marigold]'. Minutes a view without a GPU.
    """
    from d3s.atomic import make_folder
    from d3s.lab.dense import densify as filled
    from d3s.lab.dense import smooth as averaged

    largest_m = max_sigma_m(max_sigma, "--max-sigma")
    limit_m = None if math.isinf(largest_m) else largest_m
    jobs = [files] if fuse else [[path] for path in files]
    targets = [(output or job[-1].parent) / f"{job[-1].stem}{_ENDING}" for job in jobs]
    if output is None or output.exists():
        check_places(*targets, force=telling.force)
    rows = []
    is_still = telling.is_silent or marigold is not None
    with progress_bar(len(jobs), "Densifying.", quiet=is_still) as progress:
        for number, (job, target) in enumerate(zip(jobs, targets, strict=True)):
            found = _loaded(job)
            if marigold is None:
                dense = filled(found, max_sigma_m=limit_m, min_confidence=min_confidence)
            else:
                dense = _completed(found, marigold, quiet=telling.is_silent)
            if smooth:
                dense = averaged(dense)
            if output is not None:
                make_folder(output)  # not before there is a result for it
            dense.save(target, overwrite=telling.force)
            rows.append(_row_of(dense, job[-1], target))
            if progress is not None:
                progress(number + 1, len(jobs))
    if telling.as_json:
        say_json(rows)
    for row in () if telling.is_silent else rows:
        sigma_m = row["median_sigma_of_filled_m"]
        words = "" if sigma_m is None else f" with a median sigma of {100 * sigma_m:.2g} cm"
        typer.echo(
            f"{row['file']}: {row['measured']:.1%} measured, {row['filled']:.1%} filled{words}"
        )


def _loaded(files: list[Path]) -> "DepthMap":
    """Depth map of a file, or of several frames of a still camera."""
    from d3s.estimate import DepthMap
    from d3s.lab.dense import fuse

    if len(files) == 1:
        return DepthMap.load(files[0])
    return fuse(DepthMap.load(path) for path in files)


def _completed(found: "DepthMap", weights: Path, *, quiet: bool) -> "DepthMap":
    from d3s.lab.dense.marigold import MarigoldSettings, complete_depth

    steps = MarigoldSettings().members * MarigoldSettings().steps
    with progress_bar(steps, "Completing the depth by Marigold-DC.", quiet=quiet) as progress:
        return complete_depth(found, weights, progress=progress)


def _row_of(dense: "DepthMap", source: Path, target: Path) -> dict[str, Any]:
    """Numbers of a densified depth map."""
    import numpy as np

    measured = dense.filter(filled=False)
    is_filled = dense.valid & ~measured.valid
    return {
        "from": str(source),
        "file": str(target),
        "measured": measured.density,
        "filled": dense.density - measured.density,
        "median_sigma_of_filled_m": (
            float(np.median(dense.sigma_m[is_filled])) if is_filled.any() else None
        ),
    }
