"""The credentials of a slot are read from its file, else from the secret of that name; absent ones
are left out."""

import pytest

from agentbox.box.supervision.secrets import store_secret
from agentbox.box.supervision.slot_credentials import slot_secrets
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths


@pytest.fixture
def paths(tmp_path):
    found = Paths(tmp_path)
    found.run.mkdir(parents=True)
    store_secret(found, "STORE_DSN", "postgresql://a:b@localhost/c")
    return found


def test_a_variable_and_a_file(paths):
    """Each by its own key; a file has priority over a variable."""
    file = paths.resolve("/run/agentbox/dsn")
    file.write_text("postgresql://localhost/d\n")
    assert slot_secrets(paths, {"dsn_env": "STORE_DSN"}) == {"dsn": "postgresql://a:b@localhost/c"}
    both = {"dsn_env": "STORE_DSN", "dsn_file": "/run/agentbox/dsn", "token_env": "", "schema": "x"}
    assert slot_secrets(paths, both) == {"dsn": "postgresql://localhost/d"}


def test_what_is_absent_is_left_out(paths):
    """An unset variable, a missing file, no key at all."""
    for options in (
        {"dsn_env": "NOTHING"},
        {"dsn_file": "/run/agentbox/none"},
        {"token_env": ""},
        {},
    ):
        assert slot_secrets(paths, options) == {}


def test_an_unreadable_file_is_named(paths):
    """Without its content."""
    paths.resolve("/run/agentbox/dsn").write_bytes(b"\xff\xfe")
    with pytest.raises(AgentboxError, match="/run/agentbox/dsn"):
        slot_secrets(paths, {"dsn_file": "/run/agentbox/dsn"})
