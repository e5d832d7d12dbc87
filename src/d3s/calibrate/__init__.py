"""A folder of captures of a home-made camera in, a rig that one can trust out."""
