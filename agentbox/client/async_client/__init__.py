"""The asynchronous client of a box, one module a resource. What both clients share stays in
`agentbox.client`.
"""
