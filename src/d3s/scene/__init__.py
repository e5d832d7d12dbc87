"""The digital twin: scenes and textures in, a pair or a raw sensor frame with its truth out."""
