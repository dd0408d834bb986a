"""The docker engine: compose for start and removal, the docker client for the rest. Only code that
talks to docker goes in.
"""
