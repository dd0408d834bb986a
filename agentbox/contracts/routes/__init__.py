"""The HTTP routes, shared by server, clients and pages: what a row of an operation says, and the
routes, members and records that follow from the rows of a resource.
"""
