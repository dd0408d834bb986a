"""The HTTP routes of each resource, shared by server, clients and pages. A route is a row of the
module of its resource.
"""
