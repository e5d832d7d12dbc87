"""Examples of docs/design.md: a worked wish, and the paper's prototype varied."""

from typing import Any

import numpy as np

from d3s.lab.design.camera import Camera
from d3s.lab.design.predict import ErrorWish, predict
from d3s.lab.design.report import tolerance_cells
from d3s.lab.design.search import search
from d3s.lab.design.tolerances import tolerances
from d3s.lab.design.wish import Wish

_FAR_M = np.geomspace(0.24, 6.0, 40)
_SHOWN_M = (0.3, 0.8, 2.0)
BASELINES_MM = (2.5, 3.0, 3.84, 5.0, 5.7)
DIFFERENCES_UM = (0.0, 5.0, 14.6, 30.0, 60.0)


def example_figures() -> dict[str, Any]:
    """Two metres with a centimetre, as small as it gets; and what the size buys."""
    wish = Wish(reach_m=(0.3, 2.0), error_m=0.01)
    found = search(wish)
    kept = {"smallest": found.answers[0]}
    for sensor in ("OV9282", "daA3840-45um"):
        from d3s.lab.design.catalogue import load_catalogue
        from d3s.lab.design.wish import Given

        given = Given(sensors=(load_catalogue().sensor(sensor),))
        kept[f"smallest with {sensor}"] = search(wish, given).answers[0]
    rows = []
    for name, one in kept.items():
        camera = one.camera
        prediction = predict(camera, depths_m=_SHOWN_M)
        rows.append(
            {
                "name": name,
                "sensor": one.sensor,
                "focal_mm": 1e3 * camera.focal_length_m,
                "f_number": camera.f_number,
                "baseline_mm": 1e3 * camera.optics.baseline_m,
                "focus_m": list(camera.optics.focus_distances_m),
                "box_mm": [1e3 * side for side in camera.box_m],
                "field_deg": float(np.degrees(one.field_rad)),
                "error_mm": (1e3 * prediction.mae_m).tolist(),
            }
        )
    return {"rows": rows, "depths_m": list(_SHOWN_M)}


def explained_figures() -> dict[str, Any]:
    """The prototype with other baselines, other focus differences, and its tolerances."""
    camera = Camera.paper_prototype()
    optics = camera.optics
    baselines = []
    for mm in BASELINES_MM:
        other = camera.replace(optics=optics.replace(baseline_m=1e-3 * mm))
        baselines.append({"baseline_mm": mm, **_of(other)})
    differences = []
    middle = (optics.optical_power_left_dpt + optics.optical_power_right_dpt) / 2
    for um in DIFFERENCES_UM:
        half = 0.5e-6 * um / optics.sensor_distance_m**2
        other = camera.replace(
            optics=optics.replace(
                optical_power_left_dpt=middle + half, optical_power_right_dpt=middle - half
            )
        )
        differences.append({"difference_um": um, **_of(other)})
    prediction = predict(camera, reach_m=(0.3, 2.0))
    found = tolerances(prediction, ErrorWish(error_m=0.01))
    return {
        "baselines": baselines,
        "differences": differences,
        "tolerances": [tolerance_cells(one) for one in found],
    }


def _of(camera: Camera) -> dict[str, Any]:
    shown = predict(camera, depths_m=_SHOWN_M)
    whole = predict(camera, depths_m=_FAR_M)
    ends = whole.working_range_m()
    return {
        "view_px": camera.view_px[1],
        "error_mm": (1e3 * shown.mae_m).tolist(),
        "defocus_share": ((shown.bound.total_m / shown.bound.defocus_m) ** 2).tolist(),
        "range_m": None if ends is None else list(ends),
    }
