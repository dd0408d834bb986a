"""The host side of the mesh: admission, sessions, offers. Only code of the admitting box belongs
here."""
