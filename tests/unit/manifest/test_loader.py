"""Reading a manifest: what is rejected before the schema, and the content of a Manifest."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.manifest.keys import apply_class, effective_values, keys
from agentbox.manifest.load import MAX_BYTES, load, parse
from agentbox.manifest.types import Size

MINIMAL = b"[meta]\nschema_version = 1\n"


def test_absent_keys_take_the_defaults() -> None:
    """The smallest manifest has every key of the model."""
    manifest = parse(MINIMAL, "x")
    assert manifest.findings == ()
    assert manifest.effective is not None
    assert manifest.effective.resources.memory == Size("4GiB")
    assert manifest.effective.resources.memory == 4 << 30
    assert set(effective_values(manifest)) == {path for path in keys() if "*" not in path}


def test_what_is_written_and_where() -> None:
    """`written` is the document, `where` its positions, `place` falls back to the nearest written
    table."""
    manifest = parse(MINIMAL + b"[api]\n  port = 9191\n", "x")
    assert manifest.written == {"meta": {"schema_version": 1}, "api": {"port": 9191}}
    assert manifest.position_of("api.port") == (4, 3)
    assert manifest.position_of("api.auth") == (3, 2)
    assert manifest.position_of("mesh.mode") == (1, 1)
    assert manifest.digest.startswith("sha256:")


def test_an_off_slot_is_not_required() -> None:
    """`use = "off"` implies `required = false`, whatever is written or default."""
    text = (
        MINIMAL
        + b'[adapters]\norchestrator.use = "off"\nevents = { use = "off", required = true }\n'
    )
    effective = parse(text, "x").usable
    assert not effective.adapters.orchestrator.required
    assert not effective.adapters.events.required
    assert parse(MINIMAL, "x").usable.adapters.orchestrator.required


def test_limits_of_an_agent_are_those_of_the_box_unless_written() -> None:
    """Key by key, whichever of the two tables is first."""
    text = (
        MINIMAL
        + b'[agents.a]\ncommand = ["x"]\nlimits.pids = 7\n[agents.b]\ncommand = ["x"]\n[limits]\nmemory = "1GiB"\n'
    )
    agents = parse(text, "x").usable.agents
    assert [(agents[name].limits.pids, agents[name].limits.memory) for name in "ab"] == [
        (7, 1 << 30),
        (128, 1 << 30),
    ]


def test_a_rule_without_operations_is_about_all_of_its_scope() -> None:
    """In `net` about connect only: tcp widens and must be written."""
    text = (
        MINIMAL
        + b'[policies.p]\nfs = [{ mode = "allow", patterns = ["$TMP"] }]\nnet = [{ mode = "deny", patterns = ["*"] }]\n'
    )
    policy = parse(text, "x").usable.policies["p"]
    assert policy.fs[0].operations == ("read", "write")
    assert policy.net[0].operations == ("connect",)


def test_a_mesh_token_file_clears_the_default_variable() -> None:
    """Writing one of the pair is not writing both."""
    manifest = parse(MINIMAL + b'[mesh]\ntoken_file = "/run/secrets/T"\n', "x")
    assert manifest.findings == ()
    assert manifest.usable.mesh.token_env == ""


@pytest.mark.parametrize(
    ("data", "line", "column", "said"),
    [
        (b"a = \n", 1, 5, "Invalid value"),
        (b"a = 1\nb = [1,\n\nc = 2\n", 4, 1, ""),
        (b"a = 1\na = 2\n", 2, 6, "overwrite"),
        (b"[a]\n[a]\n", 2, 3, "twice"),
        (b"\xef\xbb\xbfa = 1\n", 1, 1, "byte order mark"),
        (b"a = 1\n# caf\xe9\n", 2, 6, "not UTF-8"),
        (b"#" * (MAX_BYTES + 1), 1, 1, "larger than 1024 KiB"),
        (b"a = " + b"[" * 100_000, 1, 1, "more than 10000 keys and values"),
        (b"a = " + b"[" * 9_000, 1, 1, "nested too deeply"),
        (b"a = " + b"1" * 5000, 1, 5, "not readable"),
        (b"[x]\n" + b".".join([b"a"] * 2000) + b" = 1\n", 2, 127, "nested too deeply"),
    ],
)
def test_what_is_no_toml(data: bytes, line: int, column: int, said: str) -> None:
    """One E000 with the parser's reason and its position; nothing is written, only defaults are
    usable."""
    manifest = parse(data, "x")
    (finding,) = manifest.findings
    assert (finding.code, finding.kind, finding.line) == ("E000", "syntax", line)
    assert said in finding.message
    assert column in (finding.column, finding.column - 1, finding.column + 1)
    assert manifest.effective is None


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    """No file, or a directory: one message, exit code 2."""
    with pytest.raises(AgentboxError) as raised:
        load(tmp_path / name)
    assert raised.value.exit_code == 2
    assert raised.value.message.startswith(f"cannot read {tmp_path}")


def test_line_ends_of_windows() -> None:
    """CRLF counts as one line end, also for places."""
    assert parse(MINIMAL.replace(b"\n", b"\r\n") + b"[api]\r\nport = 9191\r\n", "x").position_of(
        "api.port"
    ) == (4, 1)


@pytest.mark.parametrize("depth", [64, 100, *range(300, 350, 5), 1000])
def test_deep_tables_are_a_finding(depth: int) -> None:
    """Whichever reader of the document fails first."""
    (finding,) = parse(b"a = " + b"{a=" * depth + b"1" + b"}" * depth, "x").findings
    assert (finding.code, "nested too deeply" in finding.message) == ("E000", True)


def test_validated_bytes_need_no_validator() -> None:
    """With `check=False` neither jsonschema nor what it needs is imported."""
    code = (
        "import sys; from agentbox.manifest.load import parse; from agentbox.manifest.features.loader import load_features;"
        "assert parse(b'[meta]\\nschema_version = 1\\n', 'x', check=False).effective;"
        "assert load_features(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "agentbox.manifest.features" in done.stdout.split()
    assert not {"jsonschema", "referencing", "structlog", "click"} & set(done.stdout.split())


def test_apply_classes_by_real_path() -> None:
    """Names of maps are seen through."""
    assert apply_class("api.port") == "rebuild"
    assert apply_class("security.exceptions.desktop.tmpfs") == "recreate"
    with pytest.raises(KeyError):
        apply_class("api.prot")
