"""Requirements for every image: one module per check, from layers to findings. Runs inside
derivations.
"""
