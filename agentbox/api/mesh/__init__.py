"""This box's role in the mesh within the API. Hosts and clients are implemented in
`agentbox.mesh`.
"""
