"""What a box keeps for its control plane: no sum of agents takes it. Pure arithmetic, for the rule, the plan and the spawn."""

from typing import Final

TASKS: Final = 512  # processes and threads of the control plane and of commands that an operator runs beside it, at most
MIN_TASKS: Final = 128  # what it needs in a small box
TASKS_PER_AGENT: Final = (
    4  # that each living agent may have whatever the others do: its reaper, itself, and two more
)
THREADS_PER_PROCESS: Final = 8  # of `limits.pids`, for the threads of an agent's tree as a whole
MEMORY: Final = (
    256 << 20
)  # bytes of the control plane; the pages of memory file systems come on top
FILES: Final = 160  # descriptors of agent-host: database, sockets, connections, a walk of a branch
FILES_PER_AGENT: Final = (
    8  # and for each agent: its pipes, its control, a file for each kind of its output
)


def reserved_tasks(pids: int) -> int:
    """Of a box that may have `pids` processes and threads: a quarter, within bounds."""
    return max(MIN_TASKS, min(TASKS, pids // 4))


def agent_tasks(pids: int) -> int:
    """Processes and threads that all agents may have together; 0 = any number, as `pids`."""
    return max(TASKS_PER_AGENT, pids - reserved_tasks(pids)) if pids else 0


def agent_memory(memory: int, file_systems: int) -> int:
    """Bytes that all agents may use together; 0 = any number, as `memory`. `file_systems`: what those in memory may hold."""
    return max(MEMORY, memory - MEMORY - file_systems) if memory else 0


def required_tasks(agents: int, pids: int) -> int:
    """What a box must have so that of so many agents one can use its `limits.pids` to the end."""
    minimum = agents * TASKS_PER_AGENT + pids * THREADS_PER_PROCESS
    sizes = range(minimum + MIN_TASKS, minimum + TASKS)
    return next((size for size in sizes if size - reserved_tasks(size) >= minimum), minimum + TASKS)
