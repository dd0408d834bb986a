"""Tasks: one run of a program, with a bead as its receipt."""

from agentbox.api.tasks.records import TaskBody
from agentbox.api.tasks.runner import Tasks

__all__ = ["TaskBody", "Tasks"]
