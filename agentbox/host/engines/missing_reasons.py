"""What a string of `missing` means to the person who waits for it (`agentbox/box/readiness/requirements` makes the strings)."""

from __future__ import annotations

_STOPPED_STATES = ("(state=STOPPED)", "(state=FATAL)")
_EXPLANATIONS = (
    (
        "bootstrap.done sentinel",
        "the boot has not proven every required program yet, or the proof was changed",
    ),
    (
        "program:",
        "a program that the box needs is not running; it is started again, later each time: ./agentbox.sh logs says why",
    ),
    (
        "adapter:",
        "a slot that the manifest requires does not work; its backend may be down or its folder unwritable",
    ),
    (
        "disk full:",
        "that folder of the box has less than 1 MiB left: free space there, what is stored can still be read",
    ),
    (
        "path not accessible:",
        "that folder of the box cannot be written: its disk is full or mounted read-only",
    ),
    ("sandbox:canary", "no agent could be started to try the sandbox; agent-host's log says why"),
    (
        "sandbox:",
        "this kernel or this box does not hold a rule that every agent is promised; start no agents before it does",
    ),
    ("artifact:", "a file or program of the image does not work; build the image again"),
    ("draining", "the box is shutting down"),
    ("readiness evaluator stalled", "the box is too busy to check itself"),
)


def explain_missing(missing: str) -> str:
    """A sentence, or "" for a string that needs none."""
    if missing.startswith("program:") and missing.endswith(_STOPPED_STATES):
        return "a program that the box needs was stopped, and nothing starts it again: run ./agentbox.sh restart"
    return next((text for prefix, text in _EXPLANATIONS if missing.startswith(prefix)), "")
