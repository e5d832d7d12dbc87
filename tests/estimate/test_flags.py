"""The table of flags."""

import numpy as np

from d3s.estimate.flags import Flag, describe, share_of_each


def test_bits_never_change():
    # Users' files hold them.
    assert {flag.name: int(flag) for flag in Flag} == {
        "BORDER": 1,
        "INVALID_INPUT": 2,
        "SATURATED": 4,
        "LOW_TEXTURE": 8,
        "AMBIGUOUS": 16,
        "OUT_OF_RANGE": 32,
        "OCCLUDED": 64,
        "INCONSISTENT": 128,
        "LOW_CONFIDENCE": 256,
        "LARGE_SIGMA": 512,
        "CARRIED": 1024,
        "FILLED": 2048,
        "ENCLOSED": 4096,
    }


def test_reasons_of_several_flags():
    assert describe(0) == ()
    assert describe(Flag.BORDER | Flag.OCCLUDED) == (Flag.BORDER.__doc__, Flag.OCCLUDED.__doc__)
    assert describe(np.uint16(4)) == (Flag.SATURATED.__doc__,)


def test_share_of_each():
    shares = share_of_each(np.array([[0, 1], [3, 512]], dtype=np.uint16))
    assert shares == {flag.name: 0.0 for flag in Flag} | {
        "BORDER": 0.5,
        "INVALID_INPUT": 0.25,
        "LARGE_SIGMA": 0.25,
    }
