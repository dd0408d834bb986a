"""The seal that ends a boot: it watches every required program and fails closed. The code that
explains the timeline of a boot belongs here too.
"""
