"""Methods of others behind the same call as our own: ``d3s.estimate(..., method="sgbm")``.

In comes a checked pair of views (float32, NaN where there is no value), the rig and the options of
the method; out goes a `DepthMap`. Each method is one module with a class of options and one
function; `d3s.estimate.methods.methods()` lists them. Each module names its paper, the parts taken
from it, and the differences.

opencv      `sgbm` and `bm`, the two stereo matchers of OpenCV
sift        SIFT keypoints matched between the views
phase       phase correlation in windows
guo2017     differential defocus, after alignment
li2010      dual-focus stereo: blur equalised at each depth, then matched
takeda2013  stereo and defocus by deconvolution

common      input and result of a call, intensity scaling, filters and flags
matching    window matching over a grid of disparities: options, costs, left-right check, result;
            blur and subpixel shift of whole views in the frequency domain
"""

from d3s.estimate.methods import Method

METHODS = {
    "sgbm": Method("d3s.lab.peers.opencv", "estimate_sgbm", "SgbmOptions"),
    "bm": Method("d3s.lab.peers.opencv", "estimate_bm", "BmOptions"),
    "sift": Method("d3s.lab.peers.sift", "estimate_sift", "SiftOptions"),
    "phase": Method("d3s.lab.peers.phase", "estimate_phase", "PhaseOptions"),
    "guo2017": Method("d3s.lab.peers.guo2017", "estimate_guo2017", "Guo2017Options"),
    "li2010": Method("d3s.lab.peers.li2010", "estimate_li2010", "Li2010Options"),
    "takeda2013": Method("d3s.lab.peers.takeda2013", "estimate_takeda2013", "Takeda2013Options"),
}
"""Methods of others by name, registered as entry point of `d3s.methods`."""
