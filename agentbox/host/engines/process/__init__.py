"""The process engine: the same boot below a prefix on the plain host. Only code for boxes without a
container goes in.
"""
