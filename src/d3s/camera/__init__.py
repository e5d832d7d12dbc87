"""The hardware: cameras in, live pages and recordings out.

The core of the package imports nothing of this.

capture     cameras that are watched, and opened again when they are lost
recording   frames and depth in a file, as they come
live        live pages: frames of a source in, depth in a browser out
align       what to turn, and which way, on a camera that is being built
"""
