"""How the processes of a box tell each other that they work: notes, restarts, supervisord, the sentinel."""
