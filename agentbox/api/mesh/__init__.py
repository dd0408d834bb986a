"""This box's part in the mesh as the API holds it. What a host or a client does is in
`agentbox.mesh`.
"""
