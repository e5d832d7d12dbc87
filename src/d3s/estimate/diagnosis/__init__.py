"""Likely causes of an empty or poor depth map, measured on the pair, and in words.

patches    patches of both views, matched by the depth map, at equal blur
light      gain, shading, tone curve and rows of both views compared
grain      whether noise is white
blocks     blocks of the left view looked for in all of the right one
findings   `diagnose`: all numbers of a pair
words      `Cause`, and `warnings_of`: a sentence with a remedy for each likely cause
"""

from d3s.estimate.diagnosis.findings import Diagnosis, diagnose
from d3s.estimate.diagnosis.words import Cause, warnings_of
from d3s.estimate.drift_watch import Drift, DriftWatch

__all__ = ["Cause", "Diagnosis", "Drift", "DriftWatch", "diagnose", "warnings_of"]
