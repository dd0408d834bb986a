"""HTTP as every server and client here needs it: listener, bounds, headers, problem documents,
event streams. No route and no resource of the product goes in.
"""
