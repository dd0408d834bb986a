"""Probes of artifacts: is everything present that the image must contain. One kind of probe per
module.
"""
