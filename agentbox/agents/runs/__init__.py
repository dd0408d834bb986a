"""A running agent: start, output, limits, restart, exit. What is known of it afterwards is in
`registry`.
"""
