"""The image: what goes in, how it is packed, what is in it, and the host's side of building it.
Packages below run inside derivations.
"""
