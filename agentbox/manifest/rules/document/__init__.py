"""Rules about the document itself: syntax, schema, keys without effect. One file per rule, named
after its code.
"""
