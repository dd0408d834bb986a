"""The synchronous client of a box, one module per resource. Code shared by both clients belongs in
`agentbox.client`."""
