"""Memory and pods of an agent: its own state, or one shared by name. Registry, record and RPC
methods."""
