"""The door: what an agent may ask of its box, as JSON-RPC 2.0."""
