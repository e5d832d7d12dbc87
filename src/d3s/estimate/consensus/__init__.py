"""The `consensus` method: the algorithm of the paper, at its best or as printed.

A checked pair of views, a rig and `ConsensusOptions` come in, a `DepthMap` goes out. Each candidate
depth is compared with the depths that the depth equation predicts for several virtual baselines;
the candidate on which the predictions agree best is the depth of the pixel.

consensus_method   `estimate_consensus`: prefilter, compiled search, depth map
consensus_plan     candidates, virtual baselines and the shifts that belong to them
lens_corrections   correction for lenses that differ from place to place
noise_and_gain     noise that is taken from the denominator, and the contrast of both views
smoothing          fill holes, smooth, measure the noise
kernels            the search over candidates, compiled
result             flags and depth map from the result of a search
"""
