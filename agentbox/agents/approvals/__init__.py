"""Actions of agents that wait for a person: asked, decided once, used once."""
