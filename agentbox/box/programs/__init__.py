"""Programs of features that agentbox includes, and how any such program is confined. One package
per program.
"""
