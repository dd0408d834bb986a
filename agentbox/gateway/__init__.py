"""The only address an agent can reach: forward proxy, model gateway and agent API, authenticated by
the agent's own token. Only code that serves agents belongs here."""
