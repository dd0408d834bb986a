"""The host side of the mesh: admission, sessions, offers. Only what the admitting box runs goes in."""
