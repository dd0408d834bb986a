"""E016: kinds, messages, remedies; and that a rejected value is marked as invalid."""

import tomllib

import pytest
from jsonschema import Draft202012Validator

from agentbox.manifest.findings import Finding
from agentbox.manifest.load import parse
from agentbox.manifest.schema.examples import EXAMPLES
from agentbox.manifest.schema.generator import type_schema
from agentbox.manifest.types import types_by_name

BASE = "[meta]\nschema_version = 1\n"


def one(text: str) -> Finding:
    """The only finding of a manifest."""
    (finding,) = parse((BASE + text).encode(), "x").findings
    return finding


@pytest.mark.parametrize(
    ("text", "key", "kind", "remedy"),
    [
        ("[resources]\nmemry = 1\n", "resources.memry", "unknown-key", "Did you mean `memory`?"),
        (
            "[api]\nmetrics_port = 1\n",
            "api.metrics_port",
            "unknown-key",
            "`metrics_port` belongs to `[observability]`.",
        ),
        ("[federation]\n", "federation", "unknown-key", "The table is called `[mesh]`."),
        (
            "[resources]\nstop = 1\n",
            "resources.stop",
            "unknown-key",
            "Did you mean `stop_seconds`?",
        ),
        ("[relay]\n", "relay", "unknown-key", "`relay` belongs to `[sovereign_mesh]`."),
        (
            "[limits]\nenv_var = 1\n",
            "limits.env_var",
            "unknown-key",
            "`env_var` belongs to `[providers.<name>]` or `[mcp.servers.<name>]` or `[mcp.servers.<name>.headers.<name>]`.",
        ),
        (
            '[agents.Big_One]\ncommand = ["x"]\n',
            "agents.Big_One",
            "bad-value",
            "Write `[agents.big-one]`.",
        ),
        (
            '[[policies.p.net]]\nmode = "allow"\n',
            "policies.p.net[0].patterns",
            "missing-key",
            "Add `patterns = ",
        ),
        ("[agents.x]\ncommand = []\n", "agents.x.command", "bad-value", "Write at least one item."),
        (
            '[[policies.p.net]]\nmode = "alow"\npatterns = ["x.org"]\n',
            "policies.p.net[0].mode",
            "bad-value",
            'Did you mean "allow"?',
        ),
        (
            '[[policies.p.fs]]\nmode = "allow"\npatterns = ["$TMP"]\noperation = ["read"]\n',
            "policies.p.fs[0].operation",
            "unknown-key",
            "Did you mean `operations`?",
        ),
        (
            '[providers.p]\nenv_var = "A"\ntimeout_seconds = "10m"\n',
            "providers.p.timeout_seconds",
            "bad-unit",
            "`600`",
        ),
        (
            '[egress]\nallow = ["https://x.org/"]\n',
            "egress.allow",
            "bad-value",
            "a host, *.host, IP or CIDR",
        ),
        (
            '[sovereign_mesh]\nrelays = ["https://x.org"]\n',
            "sovereign_mesh.relays",
            "bad-value",
            "a ws or wss URL",
        ),
        ("[zebra]\n", "zebra", "unknown-key", "Remove it. Keys here: meta, image,"),
        ("[api]\nport = true\n", "api.port", "wrong-type", "Write a port number, such as `9090`."),
        ("[api]\nport = 9090.0\n", "api.port", "wrong-type", "Write a port number"),
        (
            '[resources]\npids = "9"\n',
            "resources.pids",
            "wrong-type",
            "Write an integer, such as `2048`.",
        ),
        ("[resources]\ncpus = inf\n", "resources.cpus", "wrong-type", "Write a number"),
        (
            "[resources]\nmemory = 4\n",
            "resources.memory",
            "wrong-type",
            'Write a size, such as `"512MiB"`.',
        ),
        ("name = {}\n", "meta.name", "wrong-type", "Write a name"),
        ("[resources]\ncpus = 1979-05-27\n", "resources.cpus", "wrong-type", "Write a number"),
        ('[resources]\nmemory = "512MB"\n', "resources.memory", "bad-unit", 'Write `"512MiB"`.'),
        ('[resources]\nmemory = "1.5 GB"\n', "resources.memory", "bad-unit", 'Write `"1536MiB"`.'),
        ('[resources]\nmemory = "1048576"\n', "resources.memory", "bad-unit", 'Write `"1MiB"`.'),
        (
            '[resources]\nstop_seconds = "30s"\n',
            "resources.stop_seconds",
            "bad-unit",
            "Write `30`.",
        ),
        (
            '[resources]\nstop_seconds = "2m"\n',
            "resources.stop_seconds",
            "bad-unit",
            "Write `120`.",
        ),
        ('[resources]\nmemory = "lots"\n', "resources.memory", "bad-value", "Write a size"),
        ('[resources]\nmemory = "4GiB\\n"\n', "resources.memory", "bad-unit", 'Write `"4GiB"`.'),
        (
            "[resources]\npids = 63\n",
            "resources.pids",
            "bad-value",
            "Write a number from 64 to 65536.",
        ),
        ('[mesh]\nmode = "clint"\n', "mesh.mode", "bad-value", 'Did you mean "client"?'),
        ('name = "Box"\n', "meta.name", "bad-value", "Write a name"),
        (
            '[api]\npublish_address = "256.1.1.1"\n',
            "api.publish_address",
            "bad-value",
            "Write an IP address",
        ),
        (
            '[api]\npublic_base = "https://u:p@h"\n',
            "api.public_base",
            "bad-value",
            "without credentials",
        ),
        ('[mesh]\nca_file = "/a/../b"\n', "mesh.ca_file", "bad-value", "absolute path"),
        ('[mesh]\nca_file = "/a//b"\n', "mesh.ca_file", "bad-value", "absolute path"),
        (
            '[image]\nsystems = ["x86_64-linux", "x86_64-linux"]\n',
            "image.systems",
            "bad-value",
            "Keep each item once.",
        ),
        (
            "[security.exceptions.desktop]\ncap_add = []\n",
            "security.exceptions.desktop.reason",
            "missing-key",
            "Add",
        ),
        (
            '[mesh]\ntoken_env = "A"\ntoken_file = "/b"\n',
            "mesh.token_file",
            "bad-value",
            "Drop `token_env`",
        ),
    ],
)
def test_kinds(text: str, key: str, kind: str, remedy: str) -> None:
    """One finding each, at the key, with a remedy that names what to write."""
    finding = one(text)
    assert (finding.code, finding.key, finding.kind) == ("E016", key, kind)
    assert remedy in finding.remedy


def test_a_required_key_is_missed() -> None:
    """The table and the key are named; a missing table too."""
    (finding,) = parse(b"[meta]\n", "x").findings
    assert (finding.key, finding.kind, finding.remedy) == (
        "meta.schema_version",
        "missing-key",
        "Add `schema_version = 1`.",
    )
    (finding,) = parse(b"", "x").findings
    assert (finding.key, finding.remedy) == ("meta", "Add `meta = { schema_version = 1 }`.")


def test_another_schema_version_names_those_understood() -> None:
    """The number, and the one that is understood."""
    (finding,) = parse(b"[meta]\nschema_version = 2\n", "x").findings
    assert finding.message == "2 is not supported: this agentbox supports 1"


def test_at_most_three_suggestions() -> None:
    """A name near many keys suggests no more than three."""
    finding = one("[limits]\nfd = 1\n")
    assert finding.remedy.count("`") <= 6


def test_a_credential_is_not_shown() -> None:
    """A rejected value that looks like a token appears in no message."""
    token = "sk-" + "a1b2c3d4" * 4
    finding = one(f'[api]\ntoken_env = "{token}"\n')
    assert token not in finding.message + finding.remedy
    assert "not shown" in finding.message


def test_all_are_reported_in_one_run() -> None:
    """Sorted by position."""
    found = parse((BASE + '[api]\nport = "1"\nauth = 3\n[zebra]\nx = 1\n').encode(), "x").findings
    assert [finding.key for finding in found] == ["api.port", "api.auth", "zebra"]


def test_a_refused_value_is_withdrawn() -> None:
    """The usable model has the default instead, and the other values as written."""
    manifest = parse((BASE + '[api]\nport = "1"\nmax_body = "2MiB"\n').encode(), "x")
    assert manifest.invalid == {"api.port"}
    assert manifest.usable.api.port == 9090
    assert manifest.usable.api.max_body == 2 << 20
    assert manifest.effective is None


@pytest.mark.parametrize(
    "address", ["::", "::1", "fe80::1", "1:2:3:4:5:6:7:8", "0.0.0.0", "255.255.255.255"]
)
def test_addresses(address: str) -> None:
    """IPv4 and IPv6 literals are accepted."""
    assert parse((BASE + f'[api]\npublish_address = "{address}"\n').encode(), "x").findings == ()


@pytest.mark.parametrize(
    "address", ["", "localhost", "1:2", "1.2.3", "01.2.3.4", "::g", "1::2::3", "1:2:3:4:5:6:7:8:9"]
)
def test_what_is_no_address(address: str) -> None:
    """Names and broken literals are refused."""
    assert one(f'[api]\npublish_address = "{address}"\n').kind == "bad-value"


@pytest.mark.parametrize("word", types_by_name())
def test_every_example_of_a_remedy_passes(word: str) -> None:
    """Each named type has one, and the type allows it."""
    (value,) = tomllib.loads(f"x = {EXAMPLES[word][1]}").values()
    schema = type_schema(types_by_name()[word])
    assert list(Draft202012Validator(schema).iter_errors(value)) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "a",
        "*.example.com",
        "example.com:443",
        "a.b:*",
        "10.0.0.1",
        "10.0.0.0/8:*",
        "fd00::/8",
        "[fd00::1]:5432",
        "::1",
    ],
)
def test_net_patterns(pattern: str) -> None:
    """Hosts, addresses and ranges, each with or without a port."""
    assert parse((BASE + f'[egress]\nallow = ["{pattern}"]\n').encode(), "x").findings == ()


@pytest.mark.parametrize(
    "pattern",
    ["", "a b", "*.*.com", "a.*.com", "http://a", "a:0", "a:b", "a/24", "$EGRESS", "-a", "a..b"],
)
def test_what_is_no_net_pattern(pattern: str) -> None:
    """Schemes, paths, inner stars and broken ports are refused."""
    assert one(f'[egress]\nallow = ["{pattern}"]\n').kind == "bad-value"


@pytest.mark.parametrize(
    ("target", "taken"), [("10.0.0.5:5432", True), ("db.lan:*", True), ("10.0.0.5", False)]
)
def test_a_private_target_names_its_port(target: str, taken: bool) -> None:
    """An exemption is never for all ports by omission."""
    found = parse((BASE + f'[egress]\nallow_private = ["{target}"]\n').encode(), "x").findings
    assert (found == ()) == taken
