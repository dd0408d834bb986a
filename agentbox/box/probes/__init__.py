"""Probes of artifacts: is everything there that the image must contain. One kind of probe a module."""
