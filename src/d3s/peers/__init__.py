"""Methods of others behind the same call as our own: ``d3s.estimate(..., method="sgbm")``.

opencv      `sgbm` and `bm`, the two stereo matchers of OpenCV
sift        keypoints matched between the views
phase       phase correlation in windows
guo2017     differential defocus, after alignment
li2010      dual-focus stereo: both views blurred alike, then matched
takeda2013  stereo and defocus by deconvolution

common      scales, ranges, flags and the result, for all of them
hypotheses  depths to try, and the best of costs that come one at a time
search      options and the end of methods that try one depth after another
fourier     whole views in the frequency domain
"""
