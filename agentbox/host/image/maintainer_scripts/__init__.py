"""What maintainer scripts would have made from a feature's packages, made while the image is built.
One maker a module.
"""
