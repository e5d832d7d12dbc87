"""Camera with a small sensor, whose raw frames take little time."""

import d3s

SMALL_LAYOUT = d3s.RawLayout(
    rows_px=430, cols_px=860, field_radius_px=212.0, field_edge_px=6.0, partition_px=6.0,
    partition_edge_px=8.0,
)  # fmt: skip
SMALL_MOUNTS = (
    d3s.Mount(scale=1.002, roll_rad=0.006, shift_x_px=5.0, shift_y_px=-3.0),
    d3s.Mount(scale=0.996, roll_rad=-0.004, shift_x_px=-6.0, shift_y_px=4.0),
)
SMALL_DISTANCES_M = (0.30, 0.33, 0.36, 0.40, 0.45, 0.50, 0.56)


def small_rig() -> d3s.Rig:
    """The paper's camera with a coarser sensor: its lenses are 427 px apart."""
    rig = d3s.Rig.paper_prototype()
    return rig.replace(optics=rig.optics.replace(pixel_pitch_m=9e-6))
