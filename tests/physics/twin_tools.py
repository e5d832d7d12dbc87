"""Measurements on images, independent of the methods of the simulator."""

import numpy as np

import d3s

PROTOTYPE = d3s.Rig.paper_prototype()


def thin_rig(rig=PROTOTYPE, **changes):
    """The rig with other optics."""
    return rig.replace(optics=rig.optics.replace(**changes))


def phase_shift_px(left, right, expected_px, highest=0.3):
    """x_left - x_right from the phase of the cross-spectrum, for frequencies below `highest`.

    The whole pixels of the expected shift are removed first; the rest is the slope of the phase.
    A blur disk reverses contrast at some frequencies, differently in both views; doubling the phase
    removes this effect.
    """
    whole = round(expected_px)
    a, b = left[:, whole:], right[:, : right.shape[1] - whole]
    window = np.outer(np.hanning(a.shape[0]), np.hanning(a.shape[1]))
    cross = np.fft.rfft2((a - a.mean()) * window) * np.conj(np.fft.rfft2((b - b.mean()) * window))
    y, x = np.fft.fftfreq(a.shape[0])[:, None], np.fft.rfftfreq(a.shape[1])[None]
    # The window does not move with the image and biases the lowest frequencies: leave them out.
    frequency = np.hypot(x, y)
    weight = np.abs(cross) * (frequency > 8 / min(a.shape)) * (frequency < highest)
    shift = 0.0
    for _ in range(4):
        twice = np.angle((cross * np.exp(2j * np.pi * x * shift)) ** 2)
        shift -= np.sum(weight * twice * x) / (4 * np.pi * np.sum(weight * x**2))
    return whole + shift


def dot_texture(rig, depth_m, *, size_px=1.5, window_px=700, at_px=(0.0, 0.0)):
    """A bright Gaussian dot on black, as a photograph with its size on the object.

    `size_px` is the sigma of the dot, and `at_px` its position right of and below the axis, in
    pixels of the view at that depth. The photograph has 2 texels per pixel and is wider than any
    view of a test, because it is continued by reflection.
    """
    from d3s.lab.twin.textures import Photo

    count = 2 * window_px
    place = (np.arange(count) - count // 2) / 2
    dot = np.exp(-0.5 * ((place - at_px[1]) / size_px) ** 2)[:, None] * np.exp(
        -0.5 * ((place - at_px[0]) / size_px) ** 2
    )
    width_m = window_px * depth_m / rig.optics.focal_length_px
    return Photo(image=dot, width_m=width_m)


def centroid_px(image):
    """Centroid (x, y) of the light, in pixels."""
    total = image.sum(dtype=float)
    rows, cols = np.arange(image.shape[0])[:, None], np.arange(image.shape[1])[None]
    return (image * cols).sum(dtype=float) / total, (image * rows).sum(dtype=float) / total


def second_moment_px2(image, within_px=None):
    """Second moment about the centroid, mean of both axes; within a radius if given."""
    x, y = centroid_px(image)
    square = (np.arange(image.shape[1])[None] - x) ** 2 + (
        np.arange(image.shape[0])[:, None] - y
    ) ** 2
    light = image if within_px is None else image * (square < within_px**2)
    return float((light * square).sum(dtype=float) / image.sum(dtype=float) / 2)
