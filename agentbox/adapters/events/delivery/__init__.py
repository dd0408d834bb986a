"""How the journal reaches a sink: the cursor on disk, the requests, and the task between them. Only
outbound delivery goes in.
"""
