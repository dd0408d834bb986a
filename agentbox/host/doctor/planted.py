"""What an agent holds of a folder that another one turned into a link between two of its lives."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentbox.client import BoxClient
from agentbox.client.errors import ApiError
from agentbox.sandbox.attacks.line import ABSENT, OFF, PASSED, Facts
from agentbox.sandbox.attacks.review import NO_NEXT_LIFE, in_one_folder

_STEPS: Final = 3
_NOT_STARTED: Final = 127  # exit code of an agent that could not be started again
# Its first life waits for USR1 and fails; the second tries the secrets.
_READER: Final = """
test -e "$HOME/seen" || { : > "$HOME/seen"; trap 'exit 1' USR1; echo ready; while :; do sleep 0.1; done; }
for one; do cat "$one" > /dev/null 2>&1 && { echo passed; exit 0; }; done
echo refused
"""


def planted_objects(client: BoxClient, spec: Mapping[str, Any], facts: Facts, plant: Callable[[], str]) -> str:
    """The reply. `spec`: of an agent of the default profile; `plant` goes one step on and says which one that was."""
    try:
        made = _until(plant, "made")
    except ApiError as error:
        return f"{ABSENT}{OFF}nobody may write the workspace itself here: {error.message}"
    if not made:
        return "before it was tried: no repository could be made"
    try:
        return _read(client, spec, facts, plant)
    finally:
        _until(plant, "removed")


def _until(plant: Callable[[], str], step: str) -> bool:
    """Also past what a run that was cut short has left."""
    return any(plant() == step for _ in range(_STEPS))


def _read(client: BoxClient, spec: Mapping[str, Any], facts: Facts, plant: Callable[[], str]) -> str:
    argv = ("sh", "-c", _READER, "sh", *in_one_folder(facts.secrets))
    reader, said = client.agents.spawn({**spec, "argv": argv, "restart": "on-failure"}), b""
    for item in client.agents.stream(reader.agent_id):
        if item.kind == "stdout":
            said += item.data
            if said == b"ready\n":
                plant()
                client.agents.signal(reader.agent_id, reader.generation, "USR1")
        elif item.kind == "exit" and _final(client, reader.agent_id):
            break
    if b"passed" in said:
        return PASSED
    ended = client.agents.get(reader.agent_id).exit
    never = ended is not None and ended.code == _NOT_STARTED and b"refused" not in said
    return NO_NEXT_LIFE if never else f"nothing: {said!r}"


def _final(client: BoxClient, agent_id: str) -> bool:
    return client.agents.get(agent_id).state not in ("running", "starting", "backoff")
