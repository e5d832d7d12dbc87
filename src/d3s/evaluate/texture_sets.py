"""Which textures choices may be made on, and which the report is made on: none is in both."""

TUNING_PATTERNS = ("leaves", "stone", "wood", "fabric", "noise_smooth", "calibration")
REPORT_PATTERNS = ("text", "brick", "noise", "noise_white", "gravel", "grass", "carpet", "bark")
