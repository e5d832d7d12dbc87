"""The `joint` method: rectified views in, depth, sigma, confidence and flags per pixel out."""
