"""RPC of agent-host: listener, service and methods. Methods translate and delegate, and make no
decisions."""
