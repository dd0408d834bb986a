"""The management API: probes, slots, agents and tasks over HTTP. One concern per package."""
