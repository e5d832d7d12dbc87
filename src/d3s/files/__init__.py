"""Images, depth and arrays from and to files.

Paths come in; images (float32, full scale 1), depth images, points and named arrays go out, and the
other way round. A file is checked before it is believed: its size is read from its header and
refused before anything large is allocated, and a file that is cut or damaged is refused whole.

images        `read_image`, `write_image`, `read_light`: intensity with full scale 1, and colours
depth_files   `read_depth`, `write_depth`, `write_disparity`: depth in the common formats
depth_image   `DepthImage` and `Points`, the content of files of depth
arrays        `read_npz`, `write_npz`: named arrays in one file; NPY, one array
codecs        the readers and writers of every format of the table `d3s.formats`
raw           the bytes of a file, the errors that every format shares, and EXIF orientation
pictures, tiff, netpbm              image formats (pictures: PNG, JPEG, BMP and WebP)
depth_png, exr, points              depth formats (points: PLY and CSV)
ros           ROS messages of depth, and MCAP recordings of them
note          the unit and the camera, inside a file of depth or beside it
"""

from d3s.files.arrays import read_npz, write_npz
from d3s.files.depth_files import read_depth, write_depth, write_disparity
from d3s.files.depth_image import DepthImage, Points
from d3s.files.images import list_images, read_image, write_image
from d3s.formats import IMAGE_SUFFIXES

__all__ = [
    "IMAGE_SUFFIXES",
    "DepthImage",
    "Points",
    "list_images",
    "read_depth",
    "read_image",
    "read_npz",
    "write_depth",
    "write_disparity",
    "write_image",
    "write_npz",
]
