"""The ASGI application of a listener: match, judge, handle, answer. No resource of the product goes
in.
"""
