"""How the journal reaches a sink: the cursor on disk, the requests, and the task between them (slots.md 3.4, V14 to V17)."""
