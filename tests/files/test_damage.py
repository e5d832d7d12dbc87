"""Cut and damaged files: test 1 of what the project must withstand.

Only a refusal in words or a whole image comes out of any bytes.
"""

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.files import read_image

VARIANT_MUTATIONS = 60


def cuts(size: int) -> list[int]:
    """64 places to cut a file, and each of the last bytes."""
    return sorted({*np.linspace(0, size - 1, 64).astype(int), *range(size - 8, size)})


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The same with one to four other bytes."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        changed[rng.integers(len(changed))] = rng.integers(256)
    return bytes(changed)


def test_no_cut_file_is_taken_for_whole(tmp_path, good, kind):
    path = tmp_path / "cut"
    for size in cuts(len(good)):
        path.write_bytes(good[:size])
        with pytest.raises(InputError, match="cut: "):
            read_image(path)


def test_damage_is_refused_or_leaves_a_whole_image(tmp_path, good, kind):
    path = tmp_path / "damaged"
    path.write_bytes(good)
    shape = read_image(path).shape
    rng = np.random.default_rng(len(good))
    for _ in range(VARIANT_MUTATIONS if " " in kind else 500):
        path.write_bytes(mutated(good, rng))
        try:
            image = read_image(path)
        except InputError:
            continue
        if not kind.startswith(("jpeg", "webp")):  # whose size nothing vouches for
            assert image.shape == shape
        assert image.dtype == np.float32
        assert np.isfinite(image).all()
