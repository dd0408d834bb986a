"""What agent-host reports beside the orchestrator slot: lifecycle record, denials, canaries.
Records and Protocols only.
"""
