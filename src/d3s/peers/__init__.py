"""Methods of others behind the same call as our own: ``d3s.estimate(..., method="sgbm")``.

opencv  `sgbm` and `bm`, the two stereo matchers of OpenCV
"""
