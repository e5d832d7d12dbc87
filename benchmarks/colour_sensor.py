"""A colour sensor against a mono sensor, and how surely one is noticed.

    .venv/bin/python benchmarks/colour_sensor.py [--quick] [--only accuracy|noticed] [--page PAGE]

**Accuracy.** The same camera three times, with a mono sensor, and with a colour sensor whose green
filter passes as much light as the mono sensor gets (which takes a longer exposure), and one with
the transmission of real filters at the exposure of the mono sensor. Each is calibrated by itself
from raw frames of the same grey board; then it sees walls whose colours differ, with textures that
nothing was tuned on. Error: mean absolute error over the pixels with a depth, over that of the
mono sensor. The sensor has 10 000 electrons at full scale and a read noise of 5.

**Noticed.** Raw frames of a colour sensor that nobody said to be one, with filters and scenes drawn
at random, and raw frames of a mono sensor with fine textures: in how many of each
`d3s.rig.find_bayer` sees colour filters.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import d3s
from d3s.rig.find_bayer import find_bayer

RESULTS = Path(__file__).parent / "results" / "colour_sensor.json"
ELECTRONS = {"full_well_e": 10_000.0, "read_noise_e": 5.0, "bits": 12}
ORDER = "RGGB"
# Share of white light that each sensor keeps, relative to the mono sensor: red, green and blue.
SENSORS: dict[str, tuple[float, float, float] | None] = {
    "mono": None,
    "colour, as much light": (0.65, 1.0, 0.75),
    "colour, same exposure": (0.27, 0.42, 0.30),
}
REPORT_PATTERNS = ("text", "brick", "gravel", "bark")
TUNING_PATTERNS = ("leaves", "stone", "wood", "fabric")
COLOURS = (0.0, 0.5, 1.0)
DEPTHS_M = (0.35, 0.5, 0.7, 0.85, 1.0, 1.3)
BOARDS_M = tuple(float(one) for one in np.geomspace(0.28, 1.5, 17))
BORDER_PX = 24


class Camera(NamedTuple):
    """Camera as built, and its sensor."""

    design: d3s.Rig
    layout: d3s.RawLayout


def camera(pitch_m: float) -> Camera:
    """Camera of the paper with pixels of another size; the sensor keeps its width."""
    paper = d3s.Rig.paper_prototype()
    scale = paper.optics.pixel_pitch_m / pitch_m
    layout = d3s.RawLayout()
    sizes = {
        name: 2 * round(getattr(layout, name) * scale / 2) for name in ("rows_px", "cols_px")
    } | {
        name: getattr(layout, name) * scale
        for name in ("field_radius_px", "field_edge_px", "partition_px", "partition_edge_px")
    }
    return Camera(
        paper.replace(optics=paper.optics.replace(pixel_pitch_m=pitch_m)),
        layout.replace(**sizes),
    )


def sensor_of(shares: tuple[float, float, float] | None) -> d3s.Sensor:
    """Sensor with or without colour filters."""
    if shares is None:
        return d3s.Sensor(**ELECTRONS)
    return d3s.Sensor(**ELECTRONS, bayer=ORDER, channel_shares=shares)


def calibrated(cam: Camera, sensor: d3s.Sensor) -> d3s.Rig:
    """Rig from frames of a grey board at known distances; the colours are said."""
    frames = [
        d3s.simulate_raw(
            d3s.Plane(depth_m=depth_m, texture="calibration"),
            cam.design,
            noise=sensor,
            seed=(1, number),
            layout=cam.layout,
        ).image
        for number, depth_m in enumerate(BOARDS_M)
    ]
    bayer = "none" if sensor.bayer is None else sensor.bayer
    rig, report = d3s.calibrate(frames, BOARDS_M, design=cam.design, bayer=bayer)
    print(f"  calibrated: {report.verdict.grade}", flush=True)
    return rig


def score(
    cam: Camera, rig: d3s.Rig, sensor: d3s.Sensor, texture: d3s.Texture, depth_m: float
) -> dict[str, float]:
    """Errors on a wall, in millimetres and percent."""
    frame = d3s.simulate_raw(
        d3s.Plane(depth_m=depth_m, texture=texture),
        cam.design,
        noise=sensor,
        seed=(2, round(1000 * depth_m)),
        layout=cam.layout,
    )
    est = d3s.estimate(*rig.split(frame.image), rig)
    inner = np.s_[BORDER_PX:-BORDER_PX, BORDER_PX:-BORDER_PX]
    errors = est.depth_m[inner] - depth_m
    sigma, known = est.sigma_m[inner], est.valid[inner]
    return {
        "mae_mm": 1e3 * float(np.abs(errors[known]).mean()),
        "bias_mm": 1e3 * float(errors[known].mean()),
        "sigma_mm": 1e3 * float(np.median(sigma[known])),
        "within_percent": 100 * float(np.mean(np.abs(errors[known]) < sigma[known])),
        "density_percent": 100 * float(known.mean()),
    }


def accuracy(pitch_m: float, patterns: tuple[str, ...], depths_m: tuple[float, ...]) -> list[Any]:
    """Rows of all sensors, colours, textures and depths."""
    cam, rows = camera(pitch_m), []
    for name, shares in SENSORS.items():
        sensor = sensor_of(shares)
        print(name, flush=True)
        rig = calibrated(cam, sensor)
        for colour in COLOURS:
            for number, pattern in enumerate(patterns):
                texture = d3s.Texture(pattern=pattern, seed=number, colour=colour)
                for depth_m in depths_m:
                    found = score(cam, rig, sensor, texture, depth_m)
                    rows.append(
                        {
                            "sensor": name,
                            "colour": colour,
                            "pattern": pattern,
                            "depth_m": depth_m,
                            **found,
                        }
                    )
                    print(f"  {colour} {pattern:8s} {depth_m:.2f} m  " + _words(found), flush=True)
    return rows


def _words(found: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.2f}" for name, value in found.items())


def summary(rows: list[Any]) -> list[str]:
    """Lines of a table: ratio of the errors, and the share within one sigma."""
    places = [(row["pattern"], row["depth_m"]) for row in rows]
    mono = {
        (row["colour"], place): row["mae_mm"]
        for row, place in zip(rows, places, strict=True)
        if row["sensor"] == "mono"
    }
    lines = [
        "| sensor | colour of the scene | error, over mono | largest, of a wall | within 1 sigma | "
        "density |",
        "|---|---|---|---|---|---|",
    ]
    for name in SENSORS:
        for colour in COLOURS:
            some = [row for row in rows if row["sensor"] == name and row["colour"] == colour]
            if not some:
                continue
            ratios = [
                row["mae_mm"] / mono[colour, (row["pattern"], row["depth_m"])] for row in some
            ]
            within, density = (
                np.mean([row[key] for row in some])
                for key in ("within_percent", "density_percent")
            )
            lines.append(
                f"| {name} | {colour:.1f} | {np.exp(np.mean(np.log(ratios))):.2f} | "
                f"{max(ratios):.2f} | {within:.0f} % | {density:.0f} % |"
            )
    return lines


if __name__ == "__main__":
    rows = accuracy(4e-6, TUNING_PATTERNS[:3], (0.4, 0.7, 0.85, 1.2))
    print("\n".join(summary(rows)))
