"""Modules imported by a command: a limit on its start time, independent of machine load."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.api_box import TOKEN, ApiBox

from agentbox.contracts.task_records import Task
from agentbox.core.paths import CHECKOUT
from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.engines.state import BoxRecord, BoxState

# Prints what is imported at the end of a call: packages of others, and packages of agentbox; of its core the modules.
CODE = """
import sys
before = set(sys.modules)
from agentbox.host.cli.main import main
if "completion" in sys.argv:  # which ends after 300 ms, with nothing printed
    from agentbox.host.cli.commands.dev import completion
    completion._GIVE_UP_SECONDS = 60
try:
    main(sys.argv[1:])
except SystemExit as ended:
    print(ended.code, file=sys.stderr)
def room(name):
    parts = name.split(".")
    depth = 3 if parts[1] in ("box", "host", "manifest", "policy") else 2
    return name if parts[1] == "core" else ".".join(parts[:-1][:depth])
ours = {room(name) for name in sys.modules if name.startswith("agentbox.") and not hasattr(sys.modules[name], "__path__")}
roots = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names - {"agentbox"}
print(len(sys.modules), *sorted(ours | roots), file=sys.stderr)
"""


def imported(*words: str, env: dict[str, str] | None = None) -> tuple[str, int, set[str]]:
    """Exit code, number of modules, packages."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
        env=env,
    )
    code, modules = done.stderr.splitlines()[-2:]
    count, *names = modules.split()
    return code, int(count), set(names)


def test_a_valid_manifest_costs_few_imports() -> None:
    """Of others click alone; of agentbox neither plan nor engine state nor clients; 250 ms hang on it (docs/adr/0013)."""
    code, count, names = imported("config", "validate")
    assert code == "0"
    assert {name for name in names if not name.startswith("agentbox.")} == {"click"}
    assert names == {
        "click", "agentbox.host.cli", "agentbox.host.engines", "agentbox.manifest", "agentbox.manifest.declarations",
        "agentbox.manifest.features",
        "agentbox.manifest.rules", "agentbox.manifest.schema", "agentbox.manifest.tables", "agentbox.policy",
        "agentbox.policy.limits", "agentbox.policy.patterns", "agentbox.core.canonical", "agentbox.core.data_files",
        "agentbox.core.errors", "agentbox.core.files.atomic_text", "agentbox.core.frozen", "agentbox.core.paths",
        "agentbox.core.visible_text",
    }  # fmt: skip
    assert count <= 323, count  # each table and each rule is a module


def test_what_does_not_fit_brings_jsonschema(tmp_path: Path) -> None:
    """It decides about every manifest that is rejected."""
    spoilt = tmp_path / "agentbox.toml"
    spoilt.write_text("[meta]\nschema_version = 1\nzebra = 1\n")
    code, _, names = imported("config", "validate", str(spoilt))
    assert code == "1"
    assert "jsonschema" in names


@pytest.mark.parametrize("words", [["--version"], ["config", "--help"]])
def test_asking_for_help_imports_no_manifest(words: list[str]) -> None:
    """Nor anything else that help does not need."""
    code, _, names = imported(*words)
    assert code == "0"
    assert names <= {
        "click",
        "agentbox.host.cli",
        "agentbox.host.engines",
        "agentbox.core.errors",
        "agentbox.core.paths",
        "agentbox.core.visible_text",
    }


# Of agentbox what every command of a running box imports.
REACH = {
    "click", "agentbox.host.cli", "agentbox.host.engines", "agentbox.client", "agentbox.contracts",
    "agentbox.core.clock", "agentbox.core.errors", "agentbox.core.files.atomic_text", "agentbox.core.frozen",
    "agentbox.core.http.sse_parser", "agentbox.core.ids", "agentbox.core.paths", "agentbox.core.visible_text",
}  # fmt: skip
# What a command that receives a record has in addition.
RECORDS = {
    "agentbox.core.records.bounds", "agentbox.core.records.page", "agentbox.core.records.readers",
    "agentbox.core.records.wire",
    "agentbox.core.adapter_error", "agentbox.core.slot_errors", "agentbox.core.session_errors",
    "agentbox.core.mcp_errors", "agentbox.core.backup_errors", "agentbox.core.generation_errors",
    "agentbox.core.access_errors",
}  # fmt: skip
HOT = {
    "task list": RECORDS,
    "task show {task}": RECORDS,
    "agent list": RECORDS,
    "agent show {agent}": RECORDS,
    "review list": set(),
    "approvals list": set(),
    "bead list": set(),
    "bead ready": set(),
    "bead show {task}": set(),
    "bead tree": set(),
    "pod ls": set(),
    "memory list": set(),
    "completion ids tasks": set(),
    "completion ids pods": set(),
    "events tail": set(),
    "events search word": set(),
    "events show 0": set(),
    "run -- true": RECORDS,
    "status": {"agentbox.core.canonical", "agentbox.core.mount_namespace", "agentbox.plan", "agentbox.box.supervision"},
}  # fmt: skip
MODULES = 240  # of the standard library most; a library for HTTP alone brings 150


@pytest.fixture(scope="module")
def box(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, dict[str, str], dict[str, str]]]:
    """A manifest whose box runs, the environment that finds it, and the ids of a task and its agent."""
    folder = tmp_path_factory.mktemp("hot")
    manifest, state = folder / "agentbox.toml", BoxState(folder / "state/hot")
    manifest.write_text('[meta]\nschema_version = 1\nname = "hot"\n')
    environment = {**os.environ, "AGENTBOX_STATE_DIR": str(folder / "state")}
    with ApiBox(folder / "box") as running, running.client() as client:
        task = client.submit_task({"name": "t", "argv": ["true"], "profile": "sandboxed"}).task_id
        *_, done = client.task_logs(task)
        assert isinstance(done, Task)
        state.make()
        state.save_token(TOKEN)
        state.save_record(
            BoxRecord(
                engine="process", name="hot", api_url=running.url, root=str(state.directory / "root"), pid=os.getpid(),
                start_ticks=start_ticks(os.getpid()),
            )
        )  # fmt: skip
        imported("--manifest", str(manifest), "status", env=environment)  # reads the manifest, once
        yield manifest, environment, {"task": task, "agent": str(done.agent_id)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", HOT)
def test_a_hot_verb_imports_what_it_needs(
    box: tuple[Path, dict[str, str], dict[str, str]], words: str
) -> None:
    """No TOML, no model, no HTTP library, no bar: 150 ms hang on it."""
    manifest, environment, ids = box
    code, count, names = imported(
        "--manifest", str(manifest), *words.format(**ids).split(), env=environment
    )
    assert code in ("0", "1"), names
    assert names - REACH - HOT[words] == set()
    assert count <= MODULES, count
