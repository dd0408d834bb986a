"""The operator's machine: command line, engines, doctor, packages, image. Nothing of it is part of
the image, and no program of a box imports it.
"""
