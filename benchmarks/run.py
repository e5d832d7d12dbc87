"""`make bench`: ratios against peers, measured in one run, then the tables of `speed.py`."""

import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import PIL.Image
import scipy.fft
from scipy.ndimage import gaussian_filter, uniform_filter

import d3s
import speed
from d3s.files import read_image, write_image
from d3s.lab.twin.geometry import Window, perfect_views
from d3s.lab.twin.layers import placed_layers, sheets_of_layers
from d3s.lab.twin.masks import draw_mask
from d3s.optics.roots import real_cubic_roots
from d3s.optics.windows import window_sum
from sheets import Sheet, show
from timing import best_seconds

FRAME = (902, 1802)
RAW = (2160, 3840)
AGAINST = ("what", "against", "its time", "ours / its", "at most")


def companion_roots(coefficients: np.ndarray) -> np.ndarray:
    """Roots as eigenvalues of the companion matrices, as numpy.roots does for one cubic."""
    *rest, lead = coefficients
    companion = np.zeros((lead.size, 3, 3))
    companion[:, 0] = np.stack([-c / lead for c in rest[::-1]], axis=1)
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    return np.linalg.eigvals(companion)


def ten_layers() -> d3s.Layered:
    """Nine objects at different depths in front of a wall, over a full frame."""
    rng = np.random.default_rng(0)
    things = [
        d3s.Layer(
            depth_m=depth_m,
            texture=d3s.Texture(seed=number),
            mask=draw_mask(
                "blob", FRAME, (rng.uniform(0, FRAME[1]), rng.uniform(0, FRAME[0])), 250, rng
            ),
        )
        for number, depth_m in enumerate(1 / np.linspace(1 / 0.35, 1 / 1.4, 9))
    ]
    return d3s.Layered(layers=(*things, d3s.Layer(depth_m=1.7)))


def raw_frame_megabytes() -> float:
    """Peak memory in MB of a process that renders one raw frame, Python included."""
    code = (
        "import d3s; d3s.simulate_raw(d3s.Plane(depth_m=0.5, texture='calibration'), "
        "d3s.Rig.paper_prototype(), noise=0.01)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def twin_sheet() -> Sheet:
    """Time of the simulator relative to an FFT of the frame, and of layers to a plane."""
    rig, layers = d3s.Rig.paper_prototype(), ten_layers()
    lines = []
    for depth_m in (0.3, 1.0, 2.0):
        scene = d3s.Plane(depth_m=depth_m)
        window = padded_frame(scene, rig)
        image = np.random.default_rng(0).normal(size=window).astype(np.float32)

        def transform(image: np.ndarray = image) -> np.ndarray:
            spectrum = scipy.fft.rfft2(image, workers=2)
            return scipy.fft.irfft2(spectrum, s=image.shape, workers=2)

        def plane(scene: d3s.Plane = scene) -> d3s.Pair:
            return d3s.simulate(scene, rig, noise=0.01, shape=FRAME)

        plane()
        ours, fft = best_seconds(plane, transform, repeats=15)
        what = f"plane pair at {depth_m} m"
        peer = f"forward and inverse FFT of {window[0]} x {window[1]} px"
        lines.append((what, peer, f"{1e3 * fft:.1f} ms", f"{ours / fft:.2f}", "8"))
    d3s.simulate(layers, rig, noise=0.01, shape=FRAME)
    ours, one = best_seconds(lambda: d3s.simulate(layers, rig, noise=0.01, shape=FRAME), plane)
    what = "layered pair, 10 depths"
    lines.append((what, "plane pair", f"{1e3 * one:.0f} ms", f"{ours / one:.2f}", "12"))
    share = raw_frame_megabytes() / 1000
    lines.append(("raw frame, memory", "1000 MB", "", f"{share:.2f}", "1"))
    title = "the twin, 902 x 1802 px, 1 % noise, textures cached"
    return Sheet(title, AGAINST, lines, words=(0, 1))


def padded_frame(scene: d3s.Plane, rig: d3s.Rig) -> tuple[int, int]:
    """Rows and columns of the padded frame that the twin transforms for a plane."""
    frame = Window.frame(FRAME)
    placed = placed_layers(scene.layers_for(rig.optics, FRAME), rig.optics, FRAME)
    sheets, _ = sheets_of_layers(placed, perfect_views(rig.optics, FRAME), (frame, frame))
    return sheets[0].canvas.window.shape


def pillow_alone(path: Path) -> np.ndarray:
    """A 16-bit grey PNG as floats with full scale 1, by Pillow and NumPy alone."""
    with PIL.Image.open(path) as picture:
        return np.asarray(picture) / np.float32(65535)


def files_sheet() -> Sheet:
    """Reading of a raw frame, against Pillow alone, for files of both common writers."""
    rng = np.random.default_rng(0)
    light = 0.4 + 0.3 * gaussian_filter(rng.random(RAW), 5) + rng.normal(0, 0.01, RAW)
    levels = np.rint(65535 * np.clip(light, 0, 1)).astype(np.uint16)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d3s.png"
        write_image(path, levels / np.float32(65535))
        other = path.with_stem("pillow")
        PIL.Image.fromarray(levels).save(other)
        for one in (path, other):
            ours, theirs = best_seconds(
                lambda one=one: read_image(one), lambda one=one: pillow_alone(one), repeats=15
            )
            times = f"{1e3 * theirs:.0f} ms", f"{ours / theirs:.2f}"
            lines.append((f"file of {one.stem}", "Pillow alone", *times, "1"))
    title = f"reading {RAW[1]} x {RAW[0]} px of 16-bit PNG, 1 % noise"
    return Sheet(title, AGAINST, lines, words=(0, 1))


def main() -> None:
    show([foundation_sheet(), files_sheet(), twin_sheet()])
    speed.main([])


def foundation_sheet() -> Sheet:
    """Time of the root solver and the window sum against NumPy and SciPy."""
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=(4, 200_000))
    few = coefficients[:, :2000]
    image = rng.normal(size=FRAME)
    rows = []
    ours, eigen = best_seconds(
        lambda: real_cubic_roots(*coefficients), lambda: companion_roots(coefficients)
    )
    rows.append(("real roots of 200k cubics", "companion eigenvalues (numpy)", eigen / ours))
    ours, loop = best_seconds(
        lambda: real_cubic_roots(*few), lambda: [np.roots(c[::-1]) for c in few.T]
    )
    rows.append(("real roots of 2k cubics", "numpy.roots, one by one", loop / ours))
    ours, running = best_seconds(
        lambda: window_sum(image, 31), lambda: uniform_filter(image, 31, mode="constant")
    )
    rows.append(
        ("31 px window sum of a frame", "scipy uniform_filter (not NaN-safe)", running / ours)
    )
    title = f"d3s {d3s.__version__}, {platform.machine()}, Python {platform.python_version()}"
    lines = [(what, peer, f"{ratio:.2f}") for what, peer, ratio in rows]
    return Sheet(title, ("what", "peer", "its time / ours"), lines, words=(0, 1))


if __name__ == "__main__":
    main()
