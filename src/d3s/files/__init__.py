"""Images and arrays in and out, with suspicion.

A file is looked at before it is believed: its size is read from its header and refused before
anything large is allocated, and a file that is cut or damaged is refused, never half read.

images    grey images with full scale 1, from and to the common formats
arrays    named arrays in one file
raw       the bytes of a file, and what every format shares
png, jpeg, tiff, netpbm, npy    one format each, from bytes to samples
jpeg_check, jpeg_scan           whether a JPEG is whole
compiled                        the loops of both, compiled where it is worth it
tiff_codec                      how a TIFF packs its samples
"""

from d3s.files.arrays import read_npz, write_npz
from d3s.files.images import IMAGE_SUFFIXES, list_images, read_image, write_image

__all__ = ["IMAGE_SUFFIXES", "list_images", "read_image", "read_npz", "write_image", "write_npz"]
