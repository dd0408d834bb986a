"""Rules that the schema cannot express, found in the packages below. Only the engine and code
shared by several subjects belong here; a rule goes into the package of its subject.
"""
