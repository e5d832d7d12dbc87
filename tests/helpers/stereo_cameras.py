"""A stereo camera of two raw cameras: its calibration in the files of others, and its pictures."""

import json
from dataclasses import dataclass, field, replace

import cv2
import numpy as np

SIZE = 320, 240  # width and height
WALL_M = 1.6  # distance of the wall in the pictures, from the left camera


@dataclass(frozen=True, kw_only=True)
class Camera:
    """Lens model of OpenCV."""

    matrix: np.ndarray
    distortion: tuple[float, ...] = ()
    fisheye: bool = False

    def rays(self, places):
        """Directions (n, 3) with z = 1 of places (n, 2); the lens model is inverted."""
        focal = np.diag(self.matrix)[:2]
        rays = np.c_[(places - self.matrix[:2, 2]) / focal, np.ones(len(places))]
        for _ in range(40):
            rays[:, :2] += (places - self.project(rays)) / focal
        return rays

    def project(self, points):
        """Places (n, 2) in the picture of points (n, 3) of this camera's frame."""
        zero = np.zeros(3)
        lens = np.array(self.distortion or (0.0,) * 4)
        if self.fisheye:
            found = cv2.fisheye.projectPoints(points[:, None], zero, zero, self.matrix, lens)[0]
        else:
            found = cv2.projectPoints(points, zero, zero, self.matrix, lens)[0]
        return found.reshape(-1, 2)


def matrix(focal, x, y, stretch=1.0):
    return np.array([[focal, 0, x], [0, focal * stretch, y], [0, 0, 1.0]])


def rotation(*degrees):
    return cv2.Rodrigues(np.radians(degrees))[0]


@dataclass(frozen=True, kw_only=True)
class Cameras:
    """Two cameras: x_right = R x_left + t, in metres."""

    left: Camera
    right: Camera
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    translation: np.ndarray = field(default_factory=lambda: np.array([-0.12, 0.0, 0.0]))

    def swapped(self):
        turn = self.rotation.T
        return replace(
            self,
            left=self.right,
            right=self.left,
            rotation=turn,
            translation=-turn @ self.translation,
        )


# 5 % of distortion at the corners, and 2 degrees between the cameras.
RADTAN = Cameras(
    left=Camera(
        matrix=matrix(300.25, 161.5, 117.25, 1.002),
        distortion=(-0.125, 0.02, 0.0005, -0.0003),
    ),
    right=Camera(
        matrix=matrix(301.75, 157.0, 121.5, 0.999),
        distortion=(-0.12, 0.018, -0.0004, 0.0002),
    ),
    rotation=rotation(0.9, 1.4, -1.1),
    translation=np.array([-0.119, 0.0021, 0.0013]),
)
RATIONAL = replace(
    RADTAN,
    left=replace(RADTAN.left, distortion=(0.3, -0.1, 0.001, -0.0005, 0.01, 0.42, -0.05, 0.02)),
    right=replace(RADTAN.right, distortion=(0.28, -0.09, 0.0, 0.0005, 0.01, 0.4, -0.05, 0.02)),
)
FISHEYE = replace(
    RADTAN,
    left=replace(RADTAN.left, distortion=(-0.02, 0.003, -0.001, 0.0002), fisheye=True),
    right=replace(RADTAN.right, distortion=(-0.018, 0.002, -0.001, 0.0001), fisheye=True),
)
RECTIFIED = Cameras(
    left=Camera(matrix=matrix(300.25, 161.5, 117.25)),
    right=Camera(matrix=matrix(300.25, 174.125, 117.25)),
)


def rectification(cameras, size=SIZE):
    """R1, R2, P1, P2 of OpenCV."""
    zero = np.zeros(4)
    found = cv2.stereoRectify(
        cameras.left.matrix,
        zero,
        cameras.right.matrix,
        zero,
        size,
        cameras.rotation,
        cameras.translation.reshape(3, 1),
    )
    return found[:4]


def _opencv_matrix(name, value):
    value = np.atleast_2d(value)
    numbers = ", ".join(f"{one:.17g}" for one in value.ravel())
    return (
        f"{name}: !!opencv-matrix\n   rows: {value.shape[0]}\n   cols: {value.shape[1]}\n"
        f"   dt: d\n   data: [ {numbers} ]\n"
    )


def _opencv_file(path, **values):
    text = "%YAML:1.0\n---\n" + "".join(
        _opencv_matrix(name, value) if isinstance(value, np.ndarray) else f"{name}: {value}\n"
        for name, value in values.items()
    )
    path.write_text(text)
    return path


def write_opencv_stereo(cameras, folder, *, with_rectification=False, unit=1.0):
    """One file, with the names of OpenCV's sample."""
    names = dict(zip(("R1", "R2", "P1", "P2"), rectification(cameras), strict=True))
    more = names if with_rectification else {}
    return [
        _opencv_file(
            folder / "stereo.yml",
            image_width=SIZE[0],
            image_height=SIZE[1],
            M1=cameras.left.matrix,
            D1=np.array(cameras.left.distortion or (0.0,) * 5),
            M2=cameras.right.matrix,
            D2=np.array(cameras.right.distortion or (0.0,) * 5),
            R=cameras.rotation,
            T=cameras.translation[:, None] / unit,
            fisheye=int(cameras.left.fisheye),
            **more,
        )
    ]


def write_opencv_mono(cameras, folder):
    """A file for each camera, and one for R and T."""
    single = [
        _opencv_file(
            folder / f"{side}.yml",
            image_width=SIZE[0],
            image_height=SIZE[1],
            camera_matrix=camera.matrix,
            distortion_coefficients=np.array(camera.distortion or (0.0,) * 5),
            fisheye_model=int(camera.fisheye),
        )
        for side, camera in (("left", cameras.left), ("right", cameras.right))
    ]
    between = {"R": cameras.rotation, "T": cameras.translation[:, None]}
    return [*single, _opencv_file(folder / "extrinsics.yml", **between)]


def write_opencv_xml(cameras, folder):
    path = folder / "stereo.xml"
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    storage.write("image_width", SIZE[0])
    storage.write("image_height", SIZE[1])
    storage.write("fisheye", int(cameras.left.fisheye))
    for number, camera in ((1, cameras.left), (2, cameras.right)):
        storage.write(f"cameraMatrix{number}", camera.matrix)
        storage.write(f"distCoeffs{number}", np.array([camera.distortion or (0.0,) * 5]))
    storage.write("R", cameras.rotation)
    storage.write("T", cameras.translation)
    storage.release()
    return [path]


def write_kalibr(cameras, folder):
    lines = []
    for number, camera in enumerate((cameras.left, cameras.right)):
        k = camera.matrix
        lines += [
            f"cam{number}:",
            "  camera_model: pinhole",
            f"  intrinsics: {[float(one) for one in (k[0, 0], k[1, 1], k[0, 2], k[1, 2])]}",
            f"  distortion_model: {'equidistant' if camera.fisheye else 'radtan'}",
            f"  distortion_coeffs: {list(camera.distortion or (0.0,) * 4)}",
            f"  resolution: {list(SIZE)}",
            f"  rostopic: /cam{number}/image_raw",
        ]
    turn = np.eye(4)
    turn[:3, :3], turn[:3, 3] = cameras.rotation, cameras.translation
    lines += ["  T_cn_cnm1:", *(f"  - {row.tolist()}" for row in turn)]
    path = folder / "camchain.yaml"
    path.write_text("\n".join(lines) + "\n")
    return [path]


def write_ros(cameras, folder):
    found = rectification(cameras)
    paths = []
    both = zip(("left", "right"), (cameras.left, cameras.right), found[:2], found[2:], strict=True)
    for side, camera, turn, view in both:
        model = "equidistant" if camera.fisheye else "plumb_bob"
        if len(camera.distortion) > 5:
            model = "rational_polynomial"
        distortion = list(camera.distortion or (0.0,) * 5)
        tables = {
            "camera_matrix": (3, 3, camera.matrix.ravel().tolist()),
            "distortion_coefficients": (1, len(distortion), distortion),
            "rectification_matrix": (3, 3, turn.ravel().tolist()),
            "projection_matrix": (3, 4, view.ravel().tolist()),
        }
        lines = [f"image_width: {SIZE[0]}", f"image_height: {SIZE[1]}", f"camera_name: {side}"]
        lines += [f"distortion_model: {model}"]
        for name, (rows, cols, data) in tables.items():
            lines += [f"{name}:", f"  rows: {rows}", f"  cols: {cols}", f"  data: {data}"]
        paths.append(folder / f"{side}.yaml")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


def write_ros_message(cameras, folder):
    """Messages as `ros2 topic echo --once` prints them."""
    found = rectification(cameras)
    paths = []
    both = zip(("left", "right"), (cameras.left, cameras.right), found[:2], found[2:], strict=True)
    for side, camera, turn, view in both:
        model = "equidistant" if camera.fisheye else "rational_polynomial"
        arrays = {"d": camera.distortion, "k": camera.matrix, "r": turn, "p": view}
        lines = ["header:", "  stamp:", "    sec: 12", f"  frame_id: {side}"]
        lines += [f"height: {SIZE[1]}", f"width: {SIZE[0]}", f"distortion_model: {model}"]
        for name, values in arrays.items():
            lines += [f"{name}:", *(f"- {float(one)!r}" for one in np.ravel(values))]
        paths.append(folder / f"{side}_info.yaml")
        paths[-1].write_text("\n".join(lines) + "\n---\n")
    return paths


def write_oak(cameras, folder):
    def table(camera, turn, shift, to):
        return {
            "cameraType": int(camera.fisheye),
            "distortionCoeff": list(camera.distortion) + [0.0] * (14 - len(camera.distortion)),
            "extrinsics": {
                "rotationMatrix": turn.tolist(),
                "translation": dict(zip("xyz", (100 * shift).tolist(), strict=True)),
                "specTranslation": {"x": -7.5, "y": 0.0, "z": 0.0},
                "toCameraSocket": to,
            },
            "width": SIZE[0],
            "height": SIZE[1],
            "intrinsicMatrix": camera.matrix.tolist(),
        }

    # The right camera leads to the colour camera, as in the memory of an OAK-D.
    aside, step = rotation(0.3, -0.2, 0.1), np.array([0.0375, 0.001, -0.0004])
    colour = table(cameras.left, np.zeros((3, 3)), np.zeros(3), -1)
    left = table(cameras.left, cameras.rotation, cameras.translation, 2)
    right = table(cameras.right, aside, step, 0)
    path = folder / "calib.json"
    content = {
        "productName": "OAK-D",
        "cameraData": [[0, colour], [1, left], [2, right]],
        "stereoRectificationData": {"leftCameraSocket": 1, "rightCameraSocket": 2},
    }
    path.write_text(json.dumps(content))
    return [path]


def write_realsense(cameras, folder):
    def table(camera):
        k = camera.matrix
        return {
            "width": SIZE[0],
            "height": SIZE[1],
            "fx": k[0, 0],
            "fy": k[1, 1],
            "ppx": k[0, 2],
            "ppy": k[1, 2],
            "model": "distortion.kannala_brandt4" if camera.fisheye else "distortion.brown_conrady",
            "coeffs": (list(camera.distortion) + [0.0] * 5)[:5],
        }

    content = {
        "name": "D435",
        "infra1": table(cameras.left),
        "infra2": table(cameras.right),
        "extrinsics": {
            "rotation": cameras.rotation.T.ravel().tolist(),  # column by column
            "translation": cameras.translation.tolist(),
        },
    }
    path = folder / "realsense.json"
    path.write_text(json.dumps(content))
    return [path]


def write_middlebury(cameras, folder):
    def text(k):
        return "[" + "; ".join(" ".join(f"{one:.17g}" for one in row) for row in k) + "]"

    left, right = cameras.left.matrix, cameras.right.matrix
    lines = [
        f"cam0={text(left)}",
        f"cam1={text(right)}",
        f"doffs={right[0, 2] - left[0, 2]:.17g}",
        f"baseline={-1000 * cameras.translation[0]:.17g}",
        f"width={SIZE[0]}",
        f"height={SIZE[1]}",
        "ndisp=64",
    ]
    path = folder / "calib.txt"
    path.write_text("\n".join(lines) + "\n")
    return [path]


def write_kitti(cameras, folder, names=("P_rect_02", "P_rect_03"), first="S_rect_02: 320 240\n"):
    views = [np.c_[camera.matrix, np.zeros(3)] for camera in (cameras.left, cameras.right)]
    views[1][:, 3] = views[1][:, :3] @ cameras.translation
    lines = [
        f"{name}: " + " ".join(f"{one:.17g}" for one in view.ravel())
        for name, view in zip(names, views, strict=True)
    ]
    path = folder / "calib_cam_to_cam.txt"
    path.write_text(first + "\n".join(lines) + "\n")
    return [path]


def write_kitti_odometry(cameras, folder):
    return write_kitti(cameras, folder, names=("P2", "P3"), first="")


def picture_places():
    """Places (n, 2) of all pixels, row by row."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]].astype(np.float64)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def write_pictures(cameras, left, right, seed=5):
    """Write pictures of a wall before both cameras, with noise."""
    rng = np.random.default_rng(seed)
    texture = cv2.GaussianBlur(rng.uniform(0, 1, (1200, 1600)), (0, 0), 1.6).astype(np.float32)
    texture = np.clip(0.5 + 3.0 * (texture - texture.mean()), 0, 1)
    turns = np.eye(3), cameras.rotation
    places = np.zeros(3), -cameras.rotation.T @ cameras.translation
    both = zip((left, right), (cameras.left, cameras.right), turns, places, strict=True)
    for path, camera, turn, place in both:
        directions = camera.rays(picture_places()) @ turn
        points = place + ((WALL_M - place[2]) / directions[:, 2])[:, None] * directions
        at = (points[:, :2] / 0.0025 + (800, 600)).astype(np.float32).reshape(SIZE[1], SIZE[0], 2)
        grey = cv2.remap(texture, at[..., 0], at[..., 1], cv2.INTER_CUBIC)
        noisy = grey + rng.normal(0, 0.005, grey.shape)
        cv2.imwrite(str(path), np.rint(65535 * np.clip(noisy, 0, 1)).astype(np.uint16))
