"""Rules about the mesh, relays and connections to other machines. One file a rule, named after its
code.
"""
