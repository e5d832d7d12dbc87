"""A colour sensor against a mono sensor, and how surely one is noticed.

    make colour
    .venv/bin/python benchmarks/colour_sensor.py [--quick] [--only PART]

**Accuracy.** The same camera three times, with a mono sensor, and with a colour sensor whose green
filter passes as much light as the mono sensor gets (which takes a longer exposure), and one with
the transmission of real filters at the exposure of the mono sensor. Each is calibrated by itself
from raw frames of the same grey board; then it sees walls whose colours differ, with textures that
nothing was tuned on. Error: mean absolute error over the pixels with a depth, over that of the
mono sensor. The sensor has 10 000 electrons at full scale and a read noise of 5. Beside it is the
least that it could be (`limits`). PART is accuracy or noticed.

**Noticed.** Raw frames of a colour sensor that nobody said to be one, with filters and scenes drawn
at random, and raw frames of a mono sensor with fine textures: in how many of each
`d3s.rig.bayer` sees colour filters, and in how many the quick look of `Rig.split` does.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np

import d3s
from d3s.rig.bayer import looks_coloured, on_sites, unsaid_warning
from sheets import Sheet, show

ELECTRONS = {"full_well_e": 10_000.0, "read_noise_e": 5.0, "bits": 12}
ORDER = "RGGB"
# Share of white light that each sensor keeps, relative to the mono sensor: red, green and blue.
SENSORS: dict[str, tuple[float, float, float] | None] = {
    "mono": None,
    "colour, as much light": (0.65, 1.0, 0.75),
    "colour, same exposure": (0.27, 0.42, 0.30),
}
REPORT_PATTERNS = ("text", "gravel")
COLOURS = (0.0, 0.5, 1.0)
DEPTHS_M = (0.4, 0.85, 1.2)  # out of focus, in focus, far
BOARDS_M = tuple(float(one) for one in np.geomspace(0.28, 1.5, 11))
PITCH_M = 4e-6  # twice that of the paper's camera: a quarter of the time, and finer detail
ROWS_PX = 1120  # of the sensor of the paper's camera, all columns: enough for these walls
BORDER_PX = 24
UNSAID, MONO_FRAMES = 100, 200
FINE_PATTERNS = ("noise_white", "fabric", "carpet", "text", "gravel", "grass", "bark", "brick")


class Camera(NamedTuple):
    """Camera as built, and its sensor."""

    design: d3s.Rig
    layout: d3s.RawLayout


def camera(pitch_m: float) -> Camera:
    """Camera of the paper with pixels of another size, and the middle rows of its sensor."""
    paper = d3s.Rig.paper_prototype()
    scale = paper.optics.pixel_pitch_m / pitch_m
    layout = d3s.RawLayout()
    sizes = {
        "rows_px": 2 * round(ROWS_PX * scale / 2),
        "cols_px": 2 * round(layout.cols_px * scale / 2),
    } | {
        name: getattr(layout, name) * scale
        for name in ("field_radius_px", "field_edge_px", "partition_px", "partition_edge_px")
    }
    return Camera(
        paper.replace(optics=paper.optics.replace(pixel_pitch_m=pitch_m)),
        layout.replace(**sizes),
    )


class Light(NamedTuple):
    """Light on the pixels of a mono sensor, and behind filters that pass all light of a colour."""

    mono: np.ndarray
    mosaic: np.ndarray


def light_of(cam: Camera, scene: d3s.Plane) -> Light:
    """Light of a scene, which all sensors share."""
    return Light(
        *(
            d3s.simulate_raw(scene, cam.design, noise=0.0, layout=cam.layout, bayer=bayer).image
            for bayer in (None, ORDER)
        )
    )


def frame_of(light: Light, shares: tuple[float, float, float] | None, seed: int) -> np.ndarray:
    """Raw frame of a sensor with or without colour filters."""
    if shares is None:
        passed = light.mono
    else:
        passed = light.mosaic * on_sites(shares, ORDER, light.mosaic.shape)
    return d3s.Sensor(**ELECTRONS).expose(passed, camera=0, rng=np.random.default_rng(seed))


def calibrated(
    cam: Camera, shares: tuple[float, float, float] | None, boards: list[Light]
) -> d3s.Rig:
    """Rig from frames of a grey board at known distances; the colours are said."""
    frames = [frame_of(light, shares, 100 + number) for number, light in enumerate(boards)]
    bayer = "none" if shares is None else ORDER
    rig, report = d3s.calibrate(frames, BOARDS_M, design=cam.design, bayer=bayer)
    print(f"  calibrated: {report.verdict.grade}", flush=True)
    return rig


def score(rig: d3s.Rig, frame: np.ndarray, depth_m: float) -> dict[str, float]:
    """Errors on a wall, in millimetres and percent."""
    views = rig.split(frame)
    est = d3s.estimate(*views, rig)
    # Sigma of the noise alone, without what the calibration leaves.
    bare = d3s.estimate(*views, rig, options={"rectification_sigma_px": 0.0}).sigma_m
    inner = np.s_[BORDER_PX:-BORDER_PX, BORDER_PX:-BORDER_PX]
    errors = est.depth_m[inner] - depth_m
    sigma, known = est.sigma_m[inner], est.valid[inner]
    return {
        "mae_mm": 1e3 * float(np.abs(errors[known]).mean()),
        "bias_mm": 1e3 * float(errors[known].mean()),
        "sigma_mm": 1e3 * float(np.median(sigma[known])),
        "within_percent": 100 * float(np.mean(np.abs(errors[known]) < sigma[known])),
        "within_noise_percent": 100 * float(np.mean(np.abs(errors) < bare[inner], where=known)),
        "density_percent": 100 * float(known.mean()),
    }


def accuracy(pitch_m: float, patterns: tuple[str, ...], depths_m: tuple[float, ...]) -> list[Any]:
    """Rows of all sensors, colours, textures and depths."""
    cam, rows, rigs = camera(pitch_m), [], {}
    boards = [light_of(cam, d3s.Plane(depth_m=one, texture="calibration")) for one in BOARDS_M]
    for name, shares in SENSORS.items():
        print(name, flush=True)
        rigs[name] = calibrated(cam, shares, boards)
    walls = [
        (colour, number, depth_m)
        for colour in COLOURS
        for number in range(len(patterns))
        for depth_m in depths_m
    ]
    for colour, number, depth_m in walls:
        texture = d3s.Texture(pattern=patterns[number], seed=number, colour=colour)
        light = light_of(cam, d3s.Plane(depth_m=depth_m, texture=texture))
        for name, shares in SENSORS.items():
            found = score(rigs[name], frame_of(light, shares, round(1000 * depth_m)), depth_m)
            wall = {"colour": colour, "pattern": patterns[number], "depth_m": depth_m}
            rows.append({"sensor": name, **wall, **found})
            words = f"{colour} {patterns[number]:8s} {depth_m:.2f} m {name:22s} "
            print(words + _words(found), flush=True)
    return rows


def _words(found: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.2f}" for name, value in found.items())


class Limits(NamedTuple):
    """Least error of a colour sensor over that of a mono sensor (Cramér-Rao, photon noise)."""

    one_image: float  # comparing one weighted sum of red, green and blue, with the best weights
    three_images: float  # comparing red with red, green with green and blue with blue


def limits(shares: tuple[float, float, float] | None, colour: float) -> Limits:
    """Limits by the light that reaches each colour, for textures that all pixels resolve.

    The information of a pixel on the disparity is the square of its gradient over its noise
    variance, which for photons is as 1 / light. Red, green and blue have a common texture, and one
    of their own, of the same power: with 1 - c and c of their amplitudes. A mono sensor sees the
    mean of the three.

    `shares` is the light that red, green and blue pixels get, None for a mono sensor; `colour` is
    the share c of the texture that each colour has for itself.
    """
    if shares is None:
        return Limits(1.0, 1.0)
    common, own = (1 - colour) ** 2, colour**2
    light = np.array([0.25, 0.5, 0.25]) * shares  # by the share of the pixels
    mono = common + own / 3
    three = (common + own) * light.sum()
    # All weights of a sum of 1, in steps of a hundredth.
    red, green = (axis.ravel() / 100 for axis in np.mgrid[0:101, 0:101])
    weights = np.stack([red, green, 1 - red - green])[:, red + green <= 1]
    texture = common + own * (weights**2).sum(axis=0)
    one = (texture / (weights**2 / light[:, np.newaxis]).sum(axis=0)).max()
    return Limits(float(np.sqrt(mono / one)), float(np.sqrt(mono / three)))


def accuracy_sheet(rows: list[Any]) -> Sheet:
    """Table of the errors over those of the mono sensor, and of the share within one sigma."""
    mono = {
        (row["colour"], row["pattern"], row["depth_m"]): row["mae_mm"]
        for row in rows
        if row["sensor"] == "mono"
    }
    lines = []
    for name, shares in SENSORS.items():
        for colour in COLOURS:
            some = [row for row in rows if row["sensor"] == name and row["colour"] == colour]
            if not some:
                continue
            ratios = [row["mae_mm"] / mono[colour, row["pattern"], row["depth_m"]] for row in some]
            keys = ("mae_mm", "within_percent", "within_noise_percent", "density_percent")
            mae, within, of_noise, density = (np.mean([row[key] for row in some]) for key in keys)
            lines.append(
                (
                    name,
                    f"{colour:.2f}",
                    f"{mae:.2f}",
                    f"{np.exp(np.mean(np.log(ratios))):.2f}",
                    f"{max(ratios):.2f}",
                    *(f"{limit:.2f}" for limit in limits(shares, colour)),
                    f"{within:.0f}",
                    f"{of_noise:.0f}",
                    f"{density:.0f}",
                )
            )
    headings = (
        *("sensor", "colour", "error (mm)", "over mono", "largest", "limit", "limit, three images"),
        *("within 1 sigma (%)", "of noise alone (%)", "density (%)"),
    )
    return Sheet("Colour sensors", headings, lines)


def random_frame(number: int, *, colour: bool) -> tuple[np.ndarray, str | None]:
    """Raw frame of a small sensor with a random texture, distance and filters, and its order."""
    rng = np.random.default_rng((number, int(colour)))
    paper = d3s.Rig.paper_prototype()
    rig = paper.replace(optics=paper.optics.replace(pixel_pitch_m=9e-6))
    layout = d3s.RawLayout(rows_px=430, cols_px=860, field_radius_px=212.0, field_edge_px=6.0)
    texture = d3s.Texture(
        pattern=str(rng.choice(FINE_PATTERNS)),
        seed=number,
        scale=float(rng.uniform(0.3, 1.5)),
        contrast=float(rng.uniform(0.3, 1.0)),
        colour=float(rng.uniform(0.0, 1.0)) if colour else None,
    )
    scene = d3s.TiltedPlane(
        depth_m=float(rng.uniform(0.35, 1.3)),
        tilt_x_rad=float(rng.uniform(-0.3, 0.3)),
        tilt_y_rad=float(rng.uniform(-0.3, 0.3)),
        texture=texture,
    )
    electrons = {"full_well_e": float(rng.uniform(2000, 20_000)), "read_noise_e": 5.0}
    sensor = d3s.Sensor(**electrons, bits=int(rng.choice((8, 10, 12))))
    if colour:
        red, blue = rng.uniform(0.3, 1.0, 2)
        order = str(rng.choice(("RGGB", "BGGR", "GRBG", "GBRG")))
        sensor = sensor.replace(bayer=order, channel_shares=(float(red), 1.0, float(blue)))
    frame = d3s.simulate_raw(scene, rig, noise=sensor, seed=number, layout=layout)
    return frame.image, sensor.bayer


def noticed(unsaid: int, mono: int) -> dict[str, int]:
    """Numbers of frames that are taken for those of a colour sensor."""
    counted = ("noticed", "split_warns", "false_alarms", "split_false_alarms")
    found = {"unsaid": unsaid, "mono": mono, **dict.fromkeys(counted, 0)}
    for number in range(unsaid):
        frame, _ = random_frame(number, colour=True)
        found["noticed"] += looks_coloured(frame)
        found["split_warns"] += bool(unsaid_warning(frame, is_quick=True))
    for number in range(mono):
        frame, _ = random_frame(number, colour=False)
        found["false_alarms"] += looks_coloured(frame)
        found["split_false_alarms"] += bool(unsaid_warning(frame, is_quick=True))
    return found


def noticed_text(found: dict[str, int]) -> str:
    """Sentences on the frames that are noticed."""
    return (
        f"Of {found['unsaid']} frames of a colour sensor that nobody said to be one, "
        f"{found['noticed']} are noticed.\nOf {found['mono']} frames of a mono sensor with fine "
        f"textures, {found['false_alarms']} are taken for those of a colour sensor.\nThe quick "
        f"look of `Rig.split` at arrays notices {found['split_warns']} and "
        f"{found['split_false_alarms']}."
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few walls and frames")
    parser.add_argument("--pitch-um", type=float, default=1e6 * PITCH_M, help="size of a pixel")
    parser.add_argument("--only", choices=("accuracy", "noticed"))
    given = parser.parse_args()
    if given.only != "noticed":
        walls = (("gravel",), (0.4, 0.85)) if given.quick else (REPORT_PATTERNS, DEPTHS_M)
        show([accuracy_sheet(accuracy(given.pitch_um * 1e-6, *walls))])
    if given.only != "accuracy":
        print(noticed_text(noticed(*((10, 10) if given.quick else (UNSAID, MONO_FRAMES)))))


if __name__ == "__main__":
    main()
