"""Delivery of the journal to a sink: cursor on disk, requests, and worker task. Only outbound
delivery belongs here."""
