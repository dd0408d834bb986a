"""The management API: probes, slots, agents and tasks over HTTP. What answers a request or runs
beside the requests goes in, one concern a package.
"""
