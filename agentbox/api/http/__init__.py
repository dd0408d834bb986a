"""The ASGI application of a listener: match, authorize, handle, respond. No resource of the product
belongs here.
"""
