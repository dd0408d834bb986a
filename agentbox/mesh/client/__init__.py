"""The client side of the mesh: join, heartbeat, and work without the host. Only what a joining box
runs goes in.
"""
