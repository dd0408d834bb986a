"""Rules about the mesh, relays and connections to other machines. One file per rule, named after
its code.
"""
