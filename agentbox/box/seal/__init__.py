"""The seal that ends a boot: it watches every required program and fails closed. What explains the
timeline of a boot goes in too.
"""
