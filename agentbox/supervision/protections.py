"""What a box without a container lacks: named by `up`, `status`, `/health` and `boot.json`, in these words (box.md 8)."""

PROCESS_ENGINE_LACKS: tuple[str, ...] = (
    "no read-only root",
    "no own PID, mount or network namespace",
    "no memory, CPU or pid limit for the whole box (each agent's still hold)",
    "no seccomp list on the control plane",
    "host files readable by the control plane",
)
