"""The client side of the mesh: joining, heartbeats and working offline. Only code of a joining box
belongs here."""
