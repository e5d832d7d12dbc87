"""`d3s evaluate quality`: fill rate, accuracy and noise of depth maps of a plane."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.output import value_of
from d3s.cli.units import length_m

if TYPE_CHECKING:
    from d3s.lab.evaluate.quality import Quality


def quality(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DEPTH.npz]...",
            help="Depth maps of one plane, as d3s writes them; a plane is simulated if left.",
            show_default=False,
        ),
    ] = None,
    distance: Annotated[
        float | None,
        typer.Option(
            parser=length_m,
            metavar="LENGTH",
            help="True distance of the plane. Of files: none is known if left; else 1 m.",
        ),
    ] = None,
    region: Annotated[
        float, typer.Option(help="Part of each side of the frame to look at, about its middle.")
    ] = 0.8,
    method: options.Method = None,
    frames: Annotated[
        int | None, typer.Option(help="How many frames to simulate; 10 if left.")
    ] = None,
    texture: Annotated[
        str | None, typer.Option(help="Texture of the simulated plane; brick if left.")
    ] = None,
    noise: options.Noise = None,
    shape: options.Shape = None,
    seed: options.Seed = None,
    rig: options.RigFile = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON instead of a table.")
    ] = False,
) -> None:
    """See what users of depth cameras ask: fill rate, Z-accuracy, spatial and temporal noise.

    Definitions are those of the RealSense depth quality tool. Point your camera at a textured wall,
    save several depth maps as NPZ, and name them; or leave them, to see simulated ones.
    """
    from d3s.estimate import DepthMap
    from d3s.lab.evaluate.quality import central_region, quality_of, simulated_frames

    simulated = options.given(frames=frames, texture=texture, noise=noise, shape=shape, seed=seed)
    if files:
        of_simulation = [*simulated, *options.given(method=method, rig=rig)]
        if of_simulation:
            raise typer.BadParameter(
                f"--{of_simulation[0]} is for simulated planes. Leave it, or leave the files."
            )
        maps = {"as measured": [DepthMap.load(path) for path in files]}
    else:
        distance = 1.0 if distance is None else distance
        maps = simulated_frames(
            options.contenders_of(method), distance, rig=options.rig_of(rig), **simulated
        )
    some = next(iter(maps.values()))[0]
    with value_of("--region"):
        middle = central_region(some.depth_m.shape, region)
    found = {name: quality_of(every, distance, middle) for name, every in maps.items()}
    if as_json:
        typer.echo(_json(found, distance, region))
    else:
        _print(found)


def _json(found: "Mapping[str, Quality]", distance_m: float | None, region: float) -> str:
    from d3s.lab.evaluate.table import for_json

    methods = {name: for_json(one) for name, one in found.items()}
    return json.dumps({"distance_m": distance_m, "region": region, "methods": methods}, indent=1)


def _print(found: "Mapping[str, Quality]") -> None:
    rows: list[tables.Figure] = [
        ("fill rate", lambda one: tables.percent(one.plane.fill_rate)),
        ("Z-accuracy", lambda one: tables.percent(one.plane.z_accuracy, "+.3f")),
        ("plane-fit RMS", lambda one: tables.percent(one.plane.plane_fit_rms, ".3f")),
        ("", lambda one: tables.number(1000 * one.plane.plane_fit_rms_m, ".2f", " mm")),
        ("sub-pixel RMS", lambda one: tables.number(one.plane.subpixel_rms_px, ".3f", " px")),
    ]
    frames = next(iter(found.values())).frames
    if frames > 1:
        rows += [
            ("temporal noise", lambda one: tables.percent(one.temporal.temporal_noise, ".3f")),
            ("", lambda one: tables.number(1000 * one.temporal.temporal_noise_m, ".2f", " mm")),
        ]
    else:
        rows += [("temporal noise", lambda one: "-"), ("", lambda one: "-")]
    table = tables.figures(f"A plane, {frames} frames", found, rows)
    tables.show(
        table,
        notes="As RealSense's depth quality tool has them. Percent: of the distance. Z-accuracy: "
        "the median error, positive if too far. RMS: about the plane through the depths. Temporal "
        "noise: standard deviation over the frames, the median over the pixels.",
    )
