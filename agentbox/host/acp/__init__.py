"""`agentbox acp`: the box as an agent of the Agent Client Protocol (ACP), for editors on this host.
A bridge between the editor's pipes and the API; of the protocol it knows where paths are.
"""
