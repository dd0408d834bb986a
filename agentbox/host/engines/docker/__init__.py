"""The docker engine: compose for start and removal, the docker client for everything else. Only
code that uses docker belongs here.
"""
