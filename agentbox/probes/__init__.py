"""Artifact probes (is everything there that the image must hold?) and the requirements behind `/ready`."""
