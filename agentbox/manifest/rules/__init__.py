"""What the schema cannot say: rules over a manifest, found by walking the packages below. Only the
engine and what several subjects share stands here; a rule goes into the package of its subject.
"""
