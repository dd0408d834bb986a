"""Makes a restored state of the members of a snapshot, in empty volumes: unpacked, migrated,
checked as `backup verify --deep` does, without what must not come back. Runs in a container of its
own, or as a process below a prefix of its own; never in a box that serves.
"""
