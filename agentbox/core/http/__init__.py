"""HTTP for all servers and clients: listener, limits, headers, problem documents, event streams.
Routes and resources of the product belong elsewhere.
"""
