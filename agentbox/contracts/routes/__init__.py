"""The HTTP routes of each resource, shared by server, clients and pages. A route is a row in the
module of its resource.
"""
