"""`make bench`: ratios against a peer in one run, since machines differ."""

import platform
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.ndimage import uniform_filter

import d3s
from d3s.optics.roots import real_cubic_roots
from d3s.optics.windows import window_sum

REPEATS = 5
FRAME = (902, 1802)


def best_seconds(*works: Callable[[], object]) -> list[float]:
    """Best of several runs of each, taken in turns so that a busy moment hits all of them."""
    best = [float("inf")] * len(works)
    for _ in range(REPEATS):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def companion_roots(coefficients: np.ndarray) -> np.ndarray:
    """Eigenvalues of the companion matrices, all at once: what numpy.roots does for one cubic."""
    *rest, lead = coefficients
    companion = np.zeros((lead.size, 3, 3))
    companion[:, 0] = np.stack([-c / lead for c in rest[::-1]], axis=1)
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    return np.linalg.eigvals(companion)


def main() -> None:
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
    table = Table(
        title=f"d3s {d3s.__version__}, {platform.machine()}, Python {platform.python_version()}"
    )
    table.add_column("what")
    table.add_column("peer")
    table.add_column("its time / ours", justify="right")
    for what, peer, ratio in rows:
        table.add_row(what, peer, f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
