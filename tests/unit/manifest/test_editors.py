"""Editors complete and check a manifest by the published schema, through its first line. Two language servers show it."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import npm_tools
import pytest
from case import Case, cases
from language_server import LanguageServer

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.schema.generator import PUBLISHED, schema_at

DIRECTIVE = f"#:schema ./schema/{PUBLISHED.name}\n"
BASE = f"{DIRECTIVE}[meta]\nschema_version = 1\n"
SERVERS = {
    "tombi": [str(Path(sys.executable).parent / "tombi"), "lsp"],
    "taplo": ["node", str(npm_tools.HERE / "taplo.js")],
}


@pytest.fixture(scope="module", params=list(SERVERS))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LanguageServer]:
    """A server with a directory that contains only the schema."""
    npm_tools.install()
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "schema").mkdir()
    shutil.copy(PUBLISHED, folder / "schema")
    found = LanguageServer(request.param, SERVERS[request.param], folder)
    yield found
    found.close()


def proposals(server: LanguageServer, text: str) -> dict[str, str]:
    """Label and documentation of what is offered at the end of a manifest."""
    lines = (BASE + text).split("\n")
    name = with_schema(server)
    server.change(name, BASE + text)
    items = server.complete(name, len(lines) - 1, len(lines[-1]))
    return {item["label"]: (item.get("documentation") or {}).get("value", "") for item in items}


def with_schema(server: LanguageServer) -> str:
    """A file that the server has read with the schema: it marks a key that only the schema refuses."""
    name = server.open(f"{BASE}zebra = 1\n")
    server.wait_for_problems(name, lambda lines: bool(lines))
    return name


def described(path: str) -> str:
    schema = schema_at(path)
    assert schema is not None
    return str(schema["description"])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("[resources]\nme", ["resources.memory"]),
        ("[agents.builder]\npro", ["agents.x.protocol", "agents.x.profile", "agents.x.provider"]),
        ("[adapters.beads]\nlea", ["adapters.beads.lease_seconds"]),
        ("[security.exceptions.desktop]\ncap", ["security.exceptions.desktop.cap_add"]),
    ],
)
def test_a_half_written_key_is_completed(
    server: LanguageServer, text: str, keys: list[str]
) -> None:
    """Through references and maps, with the schema's text of the key."""
    found = proposals(server, text)
    for path in keys:
        assert described(path) in found[path.rpartition(".")[2]]


def test_a_key_in_an_array_of_tables_is_completed(server: LanguageServer) -> None:
    """A rule of a policy; Taplo proposes nothing there."""
    found = proposals(server, "[[policies.p.net]]\nmet")
    assert ("methods" in found) != (server.name == "taplo")


def test_values_of_a_choice_are_offered(server: LanguageServer) -> None:
    """All of them, and no others."""
    labels = {label.strip('"') for label in proposals(server, "[mesh]\nmode = ")}
    assert {"standalone", "client", "host"} <= labels
    assert not labels & {"federated", "docker"}


def test_a_key_explains_itself(server: LanguageServer) -> None:
    """The schema's text of it is shown at the pointer."""
    name = with_schema(server)
    server.change(name, f"{BASE}[resources]\npids = 64\n")
    assert described("resources.pids") in server.hover(name, 4, 1)


@pytest.mark.parametrize(
    "manifest",
    [CHECKOUT / "agentbox.toml", CHECKOUT / "tests/rules/full.toml"],
    ids=lambda path: path.stem,
)
def test_a_good_manifest_has_no_problem(server: LanguageServer, manifest: Path) -> None:
    """The shipped one, and the one with every key: the schema means the same to others."""
    text = manifest.read_text()
    name = with_schema(server)
    server.change(name, text if text.startswith(DIRECTIVE) else DIRECTIVE + text)
    server.wait_for_problems(name, lambda lines: not lines)


OF_THE_SCHEMA = [
    case
    for case in cases("E016")
    if case.trips
    and case.name
    not in (
        "trips-pair",
        "trips-nan",
    )  # what JSON Schema cannot express, and a number that JSON does not have
]


@pytest.mark.parametrize("case", OF_THE_SCHEMA, ids=lambda case: case.id)
def test_what_e016_refuses_an_editor_marks(server: LanguageServer, case: Case) -> None:
    """At one of the lines that E016 names, or at the head of its table, where Taplo marks a key that is unknown."""
    named = {
        int(line.split()[-1].split(":")[0]) + 1 for line in case.expect if line.startswith("E016 ")
    }
    heads = {line - 1 for line in named}
    text = DIRECTIVE + case.manifest
    if (server.name, case.name) == (
        "taplo",
        "trips-reason-missing",
    ):  # it does not know dependentRequired
        name = with_schema(server)
        server.change(name, text)
        server.wait_for_problems(name, lambda marked: not marked)
    else:
        server.wait_for_problems(server.open(text), lambda marked: bool(marked & (named | heads)))
