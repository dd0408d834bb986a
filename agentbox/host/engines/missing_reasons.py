"""Explanations of the entries of `missing`, which `agentbox/box/readiness/requirements` creates."""

from __future__ import annotations

_STOPPED_STATES = ("(state=STOPPED)", "(state=FATAL)")
_EXPLANATIONS = (
    (
        "bootstrap.done sentinel",
        "the boot has not verified every required program yet, or its result was changed",
    ),
    (
        "program:",
        "a required program is not running and is being restarted: see ./agentbox.sh logs",
    ),
    (
        "adapter:",
        "a required slot does not work; its backend may be down or its directory not writable",
    ),
    (
        "disk full:",
        (
            "that directory of the box has less than 1 MiB left: free some space; stored data can "
            "still be read"
        ),
    ),
    (
        "path not accessible:",
        "that directory of the box is not writable: its disk is full or mounted read-only",
    ),
    ("sandbox:canary", "no agent could be started to test the sandbox; see the log of agent-host"),
    (
        "sandbox:",
        (
            "this kernel or box does not enforce a rule that every agent relies on; start no "
            "agents until it does"
        ),
    ),
    ("artifact:", "a file or program of the image does not work; build the image again"),
    ("draining", "the box is shutting down"),
    ("readiness evaluator stalled", "the box is too busy to check itself"),
)


def explain_missing(missing: str) -> str:
    """Return a sentence, or "" if none is needed."""
    if missing.startswith("program:") and missing.endswith(_STOPPED_STATES):
        return "a required program was stopped and is not restarted: run ./agentbox.sh restart"
    return next((text for prefix, text in _EXPLANATIONS if missing.startswith(prefix)), "")
