"""The image: content, packing, checks, and building it on the host. Packages below run inside
derivations.
"""
