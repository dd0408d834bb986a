"""The one address that an agent can reach: forward proxy, model gateway and door, each by the agent's own token."""
