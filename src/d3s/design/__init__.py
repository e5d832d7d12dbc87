"""From optics to what they can know: depth limits before a single image is taken."""
