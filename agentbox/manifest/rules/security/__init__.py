"""Rules about exceptions, credentials and the resources of the box. One file a rule, named after
its code.
"""
