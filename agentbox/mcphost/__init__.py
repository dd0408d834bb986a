"""The program mcp-host: runs and calls the MCP servers of the box. It parses what servers send,
away from the programs that hold credentials.
"""
