"""`d3s evaluate stereo` and `quality`: data that the user brings; `twin`: the twin, judged."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.camera import chosen_place, rig_or_paper
from d3s.cli.options import Given, without_none
from d3s.cli.output import progress_bar, say_files, say_json, say_step, show, table, value_of
from d3s.cli.sweeps import (
    CPU,
    NUMBER,
    PERCENT,
    REGION,
    RESULTS,
    SHARE,
    Figure,
    Form,
    Lines,
    by_method,
    contenders_of,
    figures,
    sweep_run,
)
from d3s.cli.values import Length, Shape

if TYPE_CHECKING:
    from d3s.lab.evaluate.quality import Quality
    from d3s.lab.evaluate.stereo import StereoResults

_FINE = Form(100, ".2f", " %")
_COARSE = Form(100, ".0f", " %")


def twin(
    *,
    samples: int = 256,
    pattern: str = "leaves",
    shape: Shape = None,
    rig: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Render planes and two layers by the twin and by Mitsuba 3, and compare the views.

    Mitsuba is the extra render.

    Options:
        samples: Light paths per pixel.
        pattern: Texture of all surfaces.
        as_json: Print the figures as JSON.
    """
    from d3s.lab.evaluate.twin import SCENES, compare_twin

    with progress_bar(SCENES, f"Rendering {SCENES} scenes.", quiet=quiet) as progress:
        rows = compare_twin(
            rig_or_paper(rig),
            samples=samples,
            pattern=pattern,
            progress=progress,
            **without_none({"shape": shape}),
        )
    if as_json:
        say_json([asdict(row) for row in rows], indent=1)
        return
    cells = (
        (row.scene, row.region, str(row.pixels), *map(_FINE.cell, (row.rms, row.bias, row.noise)))
        for row in rows
    )
    heads = "scene", "region", "pixels", "RMS", "mean", "noise"
    show(
        table(heads, cells, title="The twin less the path tracer"),
        notes="Of full scale, both views together. RMS: of the difference, without the noise "
        "of the path tracer. Near edges: within 12 px of the outline of the square.",
    )


def stereo(
    folder: Path,
    *,
    method: list[str] | None = None,
    light: list[str] | None = None,
    disparities: int | None = None,
    occluded: bool = False,
    output: Path = RESULTS,
    workers: int | None = None,
    scheduler: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Try methods on a stereo data set with known disparities, all on the same images.

    Writes stereo.csv, with a row for each scene, light, region and method, stereo_curves.csv, with
    the errors over density, stereo.json, with all parameters and the summary, and the chart
    stereo.png. If it is stopped, the same command goes on where it was.

    Options:
        folder: One scene or a folder of scenes, in the layout of Middlebury 2014 or v3, ETH3D
            (two-view) or KITTI 2015.
        light (gain=X|gamma=X|ramp=X): Also try with the right view in another light: gain=0.6,
            gamma=1.3, or ramp=0.3 (from -30 % at the left to +30 % at the right). Repeatable.
        disparities (COUNT): Disparities to search, from 0; those of calib.txt if left, 256 if it
            has none.
        occluded: Judge pixels that the right view does not show too.
    """
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.evaluate.stereo import evaluate_stereo, write_stereo
    from d3s.lab.evaluate.stereo.evaluation import checked_lights, stereo_files
    from d3s.lab.evaluate.stereo.scene import find_scenes
    from d3s.lab.view.methods import plot_stereo

    contenders = contenders_of(method)
    with value_of("--light"):
        lights = checked_lights(light or ())
    pairs = len(find_scenes(folder).scenes) * len(lights)
    files, where = stereo_files(output), chosen_place(workers, scheduler)
    with sweep_run(files, pairs, where, force=force, quiet=quiet) as run:
        results = evaluate_stereo(
            folder,
            contenders,
            lights=lights,
            disparities=disparities,
            with_occluded=occluded,
            workers=run["workers"],
            kept=run["folder"],
            progress=run["progress"],
        )
        write_stereo(results, output, overwrite=force)
        save_figure(plot_stereo(results), files["chart"], overwrite=True)
    if not quiet:
        _show_stereo(results)
        for name, words in results.found.left_out.items():
            say_step(f"Left out: {name} {words}.")
        say_files({name.capitalize(): path for name, path in files.items()})


_OF_STEREO: tuple[Figure, ...] = (
    ("own filter: density", "density", PERCENT),
    ("median error", "median_px", Form(1, ".3f", " px")),
    ("bad-0.5", "bad_05", _FINE),
    ("bad-1", "bad_1", _FINE),
    ("bad-2", "bad_2", _FINE),
    *((f"bad-1 at {at} %, by confidence", f"at_{at}", _FINE) for at in ("50", "70", "80")),
    *((f"bad-1 at {at} %, by sigma", f"sigma_at_{at}", _FINE) for at in ("50", "70", "80")),
    *((f"within {k} sigma", f"coverage_{k}", PERCENT) for k in ("1", "2", "3")),
    ("gain by sigma", "sigma_gain", _COARSE),
    ("gain by confidence", "confidence_gain", _COARSE),
    ("filters off: density", "found", PERCENT),
    ("bad-1", "found_bad_1", _FINE),
    ("gain by sigma", "found_sigma_gain", _COARSE),
    ("gain by confidence", "found_confidence_gain", _COARSE),
    CPU,
)


def _show_stereo(results: "StereoResults") -> None:
    from d3s.lab.evaluate.stereo.evaluation import lines_of

    columns: tuple[Figure, ...] = (
        ("dens.", "density", SHARE),
        ("bad-1", "bad_1", Form(100, ".2f")),
        ("median", "median_px", Form(1, ".3f")),
    )
    summary = results.summary()
    parts = []
    for light in (one.name for one in results.lights):
        lines = lines_of(summary, light)
        of_all = results.rows.where(light=light, region="all")
        title = f"{light}: density (%), bad-1 (%), median error (px), own filter"

        def of_scenes(line: Mapping[str, Any], rows: Any = of_all) -> Lines:
            return [one[0] for one in rows.where(method=line["method"]).groups("scene")]

        scene: Figure = ("scene", "scene", NUMBER)
        parts += by_method(f"Scenes, {title}", lines, of_scenes, [scene], columns)
        parts += figures(f"All {lines[0]['scenes']} scenes, {light}", lines, _OF_STEREO)
        parts += by_method(f"Regions, {title}", lines, lambda one: one["regions"], REGION, columns)
    show(
        *parts,
        notes="Judged: pixels of known disparity, without those that the right view does not show "
        "(unless --occluded). Density: of the judged pixels. Bad-1: the share of the retained "
        "pixels that are off by more than 1 px. All figures: the mean over the scenes. At a "
        "density: the most trusted pixels, with the filters of the method off; a dash where a "
        "scene has fewer. sgbm and bm are ordered by the uniqueness ratio that a pixel passes. "
        "Gain: what leaving out the least trusted pixels wins, of what an oracle would win; errors "
        "count as 5 px at most.",
    )


def quality(
    files: list[Path] | None = None,
    *,
    distance: Length = None,
    region: float = 0.8,
    method: list[str] | None = None,
    frames: int | None = None,
    texture: str | None = None,
    noise: float | None = None,
    shape: Shape = None,
    seed: int | None = None,
    rig: str | None = None,
    as_json: bool = False,
) -> None:
    """See what users of depth cameras ask: fill rate, Z-accuracy, spatial and temporal noise.

    Definitions are those of the RealSense depth quality tool. Point your camera at a textured wall,
    save several depth maps as NPZ, and name them; or leave them, to see simulated ones.

    Options:
        files ([DEPTH.npz]...): Depth maps of one plane, as d3s writes them; a plane is simulated if
            left.
        distance: True distance of the plane. Of files: none is known if left; else 1 m.
        region: Part of each side of the frame to look at, about its middle.
        frames: How many frames to simulate; 10 if left.
        texture: Texture of the simulated plane; brick if left.
        noise: Standard deviation of the noise, of full scale; 0.01 if left.
        as_json: Print the figures as JSON.
    """
    from d3s.estimate import DepthMap
    from d3s.lab.evaluate.quality import central_region, quality_of, simulated_frames
    from d3s.lab.evaluate.table import for_json

    simulated: Given = {
        "frames": frames,
        "texture": texture,
        "noise": noise,
        "shape": shape,
        "seed": seed,
    }
    given = without_none(simulated)
    if files:
        for name in without_none({**given, "method": method, "rig": rig}):
            raise typer.BadParameter(
                f"--{name} is for simulated planes. Leave it, or leave the files."
            )
        maps = {"as measured": [DepthMap.load(path) for path in files]}
    else:
        distance = 1.0 if distance is None else distance
        maps = simulated_frames(contenders_of(method), distance, rig=rig_or_paper(rig), **given)
    some = next(iter(maps.values()))[0]
    with value_of("--region"):
        middle = central_region(some.depth_m.shape, region)
    found = {name: quality_of(every, distance, middle) for name, every in maps.items()}
    if as_json:
        methods = {name: for_json(one) for name, one in found.items()}
        say_json({"distance_m": distance, "region": region, "methods": methods}, indent=1)
    else:
        _print_quality(found)


def _print_quality(found: "Mapping[str, Quality]") -> None:
    lines: list[Given] = []
    for name, one in found.items():
        values: Given = {"method": name, "temporal_noise": None, "temporal_noise_m": None}
        lines.append(values | asdict(one.plane) | (asdict(one.temporal) if one.temporal else {}))
    share, mm = Form(100, ".3f", " %"), Form(1000, ".2f", " mm")
    rows: list[Figure] = [
        ("fill rate", "fill_rate", PERCENT),
        ("Z-accuracy", "z_accuracy", Form(100, "+.3f", " %")),
        ("plane-fit RMS", "plane_fit_rms", share),
        ("", "plane_fit_rms_m", mm),
        ("sub-pixel RMS", "subpixel_rms_px", Form(1, ".3f", " px")),
        ("temporal noise", "temporal_noise", share),
        ("", "temporal_noise_m", mm),
    ]
    frames = next(iter(found.values())).frames
    show(
        *figures(f"A plane, {frames} frames", lines, rows),
        notes="As RealSense's depth quality tool has them. Percent: of the distance. Z-accuracy: "
        "the median error, positive if too far. RMS: about the plane through the depths. Temporal "
        "noise: standard deviation over the frames, the median over the pixels.",
    )
