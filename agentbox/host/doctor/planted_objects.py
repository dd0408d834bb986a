"""Attack: between two runs of an agent another agent replaces a granted directory with a link."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentbox.client import BoxClient
from agentbox.client.errors import ApiError
from agentbox.sandbox.attacks.case import ABSENT, OFF, PASSED, TargetInfo
from agentbox.sandbox.attacks.cases.review import NO_NEXT_RUN, in_same_directory

_MAX_STEPS: Final = 3
_NOT_STARTED: Final = 127  # exit code of an agent that could not be restarted
# The first run waits for USR1 and fails; the second tries to read the secrets.
_READER: Final = """
test -e "$HOME/seen" || {
  : > "$HOME/seen"; trap 'exit 1' USR1; echo ready; while :; do sleep 0.1; done
}
for one; do cat "$one" > /dev/null 2>&1 && { echo passed; exit 0; }; done
echo refused
"""


def try_planted_objects(
    client: BoxClient, spec: Mapping[str, Any], target: TargetInfo, plant: Callable[[], str]
) -> str:
    """Returns the reply. `spec`: an agent of the default profile; `plant` performs the next step
    and returns its name."""
    try:
        created = _reach_step(plant, "made")
    except ApiError as error:
        return f"{ABSENT}{OFF}the workspace is not writable here: {error.message}"
    if not created:
        return "not tried: no repository could be created"
    try:
        return _try_reading(client, spec, target, plant)
    finally:
        _reach_step(plant, "removed")


def _reach_step(plant: Callable[[], str], step: str) -> bool:
    """Repeats `plant` until the step; remains of an interrupted run need more than one."""
    return any(plant() == step for _ in range(_MAX_STEPS))


def _try_reading(
    client: BoxClient, spec: Mapping[str, Any], target: TargetInfo, plant: Callable[[], str]
) -> str:
    argv = ("sh", "-c", _READER, "sh", *in_same_directory(target.secrets))
    reader, output = client.agents.spawn({**spec, "argv": argv, "restart": "on-failure"}), b""
    for item in client.agents.stream(reader.agent_id):
        if item.kind == "stdout":
            output += item.data
            if output == b"ready\n":
                plant()
                client.agents.signal(reader.agent_id, reader.generation, "USR1")
        elif item.kind == "exit" and _has_ended(client, reader.agent_id):
            break
    if b"passed" in output:
        return PASSED
    exit_status = client.agents.get(reader.agent_id).exit
    not_restarted = (
        exit_status is not None and exit_status.code == _NOT_STARTED and b"refused" not in output
    )
    return NO_NEXT_RUN if not_restarted else f"nothing: {output!r}"


def _has_ended(client: BoxClient, agent_id: str) -> bool:
    return client.agents.get(agent_id).state not in ("running", "starting", "backoff")
