"""Tiny stereo data sets in the layouts of Middlebury, ETH3D and KITTI."""

import cv2
import numpy as np

SHAPE = (64, 150)
FAR_PX, NEAR_PX = 6, 14  # disparities of the wall and of the square before it
SQUARE = (slice(20, 44), slice(60, 90))  # in the left view
UNKNOWN = (slice(0, 4), slice(0, 150))  # rows without truth


def stereo_pair(seed=0):
    """Views of 8 bits, true disparity of the left view, and which of its pixels both show."""
    rng = np.random.default_rng(seed)
    wall, square = (cv2.GaussianBlur(rng.random((64, 200)), (0, 0), 0.8) for _ in range(2))
    wall, square = (np.rint(30 + 190 * (x - x.min()) / np.ptp(x)) for x in (wall, square))
    columns = np.arange(SHAPE[1])
    left, right = wall[:, columns + 20].copy(), wall[:, columns + 20 + FAR_PX].copy()
    rows, cols = SQUARE
    left[SQUARE] = square[SQUARE]
    right[rows, cols.start - NEAR_PX : cols.stop - NEAR_PX] = square[SQUARE]
    disparity = np.full(SHAPE, float(FAR_PX))
    disparity[SQUARE] = NEAR_PX
    visible = columns - disparity >= 0
    # The square hides the columns of the wall that would be seen behind it in the right view.
    hidden = slice(cols.start - NEAR_PX + FAR_PX, cols.start)
    visible[rows, hidden] = False
    return left.astype(np.uint8), right.astype(np.uint8), disparity, visible


def write_pfm(path, values):
    rows, cols = values.shape
    path.write_bytes(f"Pf\n{cols} {rows}\n-1\n".encode() + values[::-1].astype("<f4").tobytes())


def write_middlebury(folder, *, seed=0, ndisp=24, doffs=5.0, truth="disp0GT.pfm", mask=True):
    """Scene of Middlebury; of ETH3D without `ndisp` and with `doffs` 0."""
    folder.mkdir(parents=True)
    left, right, disparity, visible = stereo_pair(seed)
    cv2.imwrite(str(folder / "im0.png"), np.repeat(left[..., None], 3, axis=2))
    cv2.imwrite(str(folder / "im1.png"), np.repeat(right[..., None], 3, axis=2))
    lines = [
        f"cam0=[500 0 70; 0 500 30; 0 0 1]\ncam1=[500 0 {70 + doffs}; 0 500 30; 0 0 1]",
        f"doffs={doffs}\nbaseline=100\nwidth={SHAPE[1]}\nheight={SHAPE[0]}",
        *([] if ndisp is None else [f"ndisp={ndisp}"]),
    ]
    (folder / "calib.txt").write_text("\n".join(lines) + "\n")
    disparity[UNKNOWN] = np.inf
    if truth:
        write_pfm(folder / truth, disparity)
    if mask:
        grey = np.where(visible, 255, 128)
        grey[UNKNOWN] = 0
        cv2.imwrite(str(folder / "mask0nocc.png"), grey.astype(np.uint8))
    return folder


def write_kitti(folder, *, numbers=("000000",), occluded=True):
    """Folder `training` of KITTI 2015."""
    for number in numbers:
        left, right, disparity, visible = stereo_pair(int(number))
        known = np.where(np.isfinite(disparity), disparity, 0)
        known[UNKNOWN] = 0
        images = {
            "image_2": left,
            "image_3": right,
            "disp_noc_0": np.where(visible, known * 256, 0).astype(np.uint16),
            **({"disp_occ_0": (known * 256).astype(np.uint16)} if occluded else {}),
        }
        for name, image in images.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(folder / name / f"{number}_10.png"), image)
        calibration = folder / "calib_cam_to_cam"
        calibration.mkdir(exist_ok=True)
        (calibration / f"{number}.txt").write_text(
            "calib_time: 09-Jan-2012 13:57:47\n"
            "P_rect_02: 500 0 70 20 0 500 30 0.2 0 0 1 0.003\n"
            "P_rect_03: 500 0 70 -30 0 500 30 0.2 0 0 1 0.003\n"
        )
    return folder
