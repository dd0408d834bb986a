"""Rules about exceptions, credentials and the resources of the box. One file per rule, named after
its code.
"""
