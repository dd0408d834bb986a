"""Resources reserved for the control plane, which agents together cannot use. Pure arithmetic, for
the rule, the plan and admission.
"""

from typing import Final

# maximum of processes and threads of the control plane and of operator commands beside it
TASKS: Final = 512
MIN_TASKS: Final = 128  # minimum for a small box
TASKS_PER_AGENT: Final = (
    4  # guaranteed to each running agent: its reaper, its process, and two more
)
# factor on `limits.pids`, for the threads of an agent's process tree
THREADS_PER_PROCESS: Final = 8
MEMORY: Final = 256 << 20  # bytes of the control plane, without the pages of memory file systems
FILES: Final = 160  # descriptors of agent-host: database, sockets, connections, a branch scan
FILES_PER_AGENT: Final = (
    8  # and per agent: its pipes, its control socket, a file per kind of output
)


def reserved_tasks(pids: int) -> int:
    """For a box with `pids` processes and threads: a quarter, within bounds."""
    return max(MIN_TASKS, min(TASKS, pids // 4))


def agent_tasks(pids: int) -> int:
    """Maximum of processes and threads of all agents; 0 = unlimited, as `pids`."""
    return max(TASKS_PER_AGENT, pids - reserved_tasks(pids)) if pids else 0


def agent_memory(memory: int, file_systems: int) -> int:
    """Maximum of bytes used by all agents; 0 = unlimited, as `memory`. `file_systems`: size of
    those in memory.
    """
    return max(MEMORY, memory - MEMORY - file_systems) if memory else 0


def required_tasks(agents: int, pids: int) -> int:
    """The minimum of processes and threads of a box in which one of so many agents can use all of
    its `limits.pids`.
    """
    minimum = agents * TASKS_PER_AGENT + pids * THREADS_PER_PROCESS
    sizes = range(minimum + MIN_TASKS, minimum + TASKS)
    return next((size for size in sizes if size - reserved_tasks(size) >= minimum), minimum + TASKS)
