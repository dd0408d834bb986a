"""How the journal reaches a sink: the cursor on disk, the requests, and the task between them (V14 to V17)."""
