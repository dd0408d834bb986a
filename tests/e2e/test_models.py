"""From a key on stdin to an answer of a model, as an operator types it: secrets, up, agents of the manifest, budgets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli_box import CliBox, wait_for
from support.model_server import ModelServer, play_script
from support.model_turns import ModelTurn

UP = ("--engine", "process")
KEY = "operator-key-0123456789abcdef"
ASKS = (
    'curl -sS "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" '
    '-d \'{"model":"small-1","max_tokens":500,"messages":[{"role":"user","content":"Hi."}]}\''
)
MANIFEST = """
[providers.local]
enabled = true
base_url = "{url}/v1"
env_var = "MODEL_KEY"

[agents.asker]
command = ["/bin/sh", "-c", '''{asks}''']
provider = "local"
llm.max_tokens = 900
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A provider that accepts one key, and uses all the output that it is allowed."""
    with ModelServer(
        reply=play_script([ModelTurn(text="I am the model.", tokens=1 << 30)]), key=KEY
    ) as running:
        yield running


def asked(box: CliBox) -> str:
    """What an agent of the manifest was answered."""
    made = box("agent", "spawn", "asker").out.strip()
    wait_for(lambda: "exited" in box("agent", "show", made).out, 30, "it has asked")
    return box("agent", "logs", made).out


def test_a_key_a_call_a_budget(cli_box: CliBox, server: ModelServer) -> None:
    """The key comes from stdin and is shown nowhere; a changed one applies after `up`; used budget
    stays used."""
    cli_box.write(MANIFEST.format(url=server.url, asks=ASKS))
    assert cli_box("secrets", "set", "MODEL_KEY", given=f"{KEY}\n").code == 0
    ran = cli_box.up(*UP)
    assert "I am the model." in asked(cli_box)
    assert KEY not in ran.out + ran.err + cli_box("secrets", "list").out
    assert cli_box("secrets", "set", "MODEL_KEY", given="another-key-0123456789").code == 0
    cli_box.up(*UP)
    assert "rejected the key of this box" in asked(cli_box)
    assert cli_box("secrets", "set", "MODEL_KEY", given=KEY).code == 0
    cli_box.up(*UP)
    assert "I am the model." in asked(cli_box)
    assert server.requests[-1].body["max_tokens"] < 500  # what the box left before the two restarts
    assert "over the model budget of asker" in asked(cli_box)
