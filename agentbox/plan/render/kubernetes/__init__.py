"""Plan -> Kubernetes objects, for an image that a registry holds by digest. One kind of object a
module.
"""
