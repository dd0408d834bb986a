"""The process engine: the same boot below a prefix on the host. Only code for boxes without a
container belongs here.
"""
