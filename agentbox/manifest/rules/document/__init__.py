"""Rules about the document itself: syntax, schema, keys without effect. One file a rule, named
after its code.
"""
