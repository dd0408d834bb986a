"""What is recorded of starts, with the inputs of a real one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.start import UpOptions, start_spec
from agentbox.host.cli.stages.upgrade import UpgradeOptions, require_upgradable
from agentbox.host.engines.base import StartSpec
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.recording import amend, begin
from agentbox.host.generations.store import FILES, GenerationStore


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliContext:
    """A manifest with the lock of this checkout."""
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    manifest = tmp_path / "agentbox.toml"
    manifest.write_text('[meta]\nschema_version = 1\nname = "recorded"\n')
    shutil.copy(CHECKOUT / "agentbox.lock", tmp_path / "agentbox.lock")
    made = CliContext(manifest_argument=manifest, quiet=True)
    made.state().make()
    return made


@pytest.fixture
def spec(cli: CliContext) -> StartSpec:
    return start_spec(cli, cli.load_manifest(), UpOptions(), "process")


def record(cli: CliContext, number: int) -> BoxRecord:
    made = BoxRecord(engine="process", name="recorded", api_url="http://127.0.0.1:1")
    return replace(made, generation=number, root=str(cli.state().directory / "root"))


def test_keys_that_took_effect_keep_what_the_upgrade_noted(
    cli: CliContext, spec: StartSpec
) -> None:
    """Copies, and what the stores held when they were made, are one: `rollback --state` needs
    both."""
    engine, store = ProcessEngine(), GenerationStore(cli.state())
    number = begin(engine, spec).number
    last = record(cli, number)
    noted, copies = {"stores": {"beads/beads.db": {"rows": 3}}}, [{"name": "beads/beads.db"}]
    store.save(replace(store.get(number), noted=noted, copies=copies), current=True)
    amend(engine, spec, last, last)
    assert (store.get(number).noted, store.get(number).copies) == (noted, copies)


def test_the_present_generation_is_not_its_own_upgrade(cli: CliContext, spec: StartSpec) -> None:
    """A box that is down and unchanged: the record of the present one would be the new one's, and
    an interruption would remove it."""
    engine, store = ProcessEngine(), GenerationStore(cli.state())
    number = begin(engine, spec).number
    store.save(
        replace(store.get(number), box={"engine": "process", "name": "recorded", "api_url": "u"}),
        current=True,
    )
    (store.folder(number) / FILES).mkdir(exist_ok=True)
    options = UpgradeOptions(
        wait_agents=0, backup=lambda: "", named=True, may_return=lambda _reason: True
    )
    with pytest.raises(AgentboxError, match="it does not run"):
        require_upgradable(cli, engine, spec, options)
