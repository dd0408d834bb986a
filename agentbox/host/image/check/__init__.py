"""What every image must satisfy: one module a check, from layers to findings. Runs inside
derivations.
"""
