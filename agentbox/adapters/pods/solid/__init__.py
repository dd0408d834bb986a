"""Pods on a Solid server: connection, bodies, listings, capabilities. Only the client side of the
Solid protocol belongs here."""
