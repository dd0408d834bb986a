"""Plan -> Kubernetes objects, for an image in a registry, by digest. One kind of object
per module.
"""
