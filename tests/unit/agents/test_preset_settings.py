"""The settings of agent CLIs in HOME: their content, and what an earlier life of the agent put in their place."""

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from agentbox.agents.runs.preset_settings import render_settings, write_settings
from agentbox.agents.runs.skill_links import SKILL_FOLDERS
from agentbox.manifest.features.presets import presets
from agentbox.manifest.tables.agents import AgentTable

GATEWAY, MODEL = "http://127.0.0.1:29999", "http://127.0.0.1:29999/llm/models"
FILES = {".codex/config.toml": b"x = 1\n", ".a.json": b"{}"}


def test_the_manifest_offers_the_presets_that_exist() -> None:
    """One data file for each choice."""
    offered = get_args(get_type_hints(AgentTable)["preset"])
    assert set(offered) - {""} == set(presets())
    assert set(SKILL_FOLDERS) == set(offered)


@pytest.mark.parametrize("name", sorted(presets()))
def test_settings_are_complete_and_name_the_token_by_its_variable(name: str) -> None:
    """Each file can be read in its format, points to the gateway, and has no placeholder left."""
    files = render_settings(presets()[name], gateway=GATEWAY, model=MODEL)
    text = "".join(content.decode() for content in files.values())
    assert f"{GATEWAY}/mcp" in text
    assert "AGENTBOX_TOKEN" in text
    assert "{gateway}" not in text
    assert "{model}" not in text
    for path, content in files.items():
        parse = tomllib.loads if path.endswith(".toml") else json.loads
        assert parse(content.decode())


def test_codex_gets_the_address_of_its_provider() -> None:
    """It is the one that does not read it from the environment."""
    files = render_settings(presets()["codex"], gateway=GATEWAY, model=MODEL)
    settings = tomllib.loads(files[".codex/config.toml"].decode())
    provider = settings["model_providers"][settings["model_provider"]]
    assert provider["base_url"] == f"{MODEL}/v1"
    assert provider["env_key"] == "OPENAI_API_KEY"


def test_files_are_for_the_agent_alone(tmp_path: Path) -> None:
    """Mode 0600, in directories of mode 0700; written again they are replaced."""
    for _ in range(2):
        write_settings(tmp_path, FILES)
    assert (tmp_path / ".codex/config.toml").read_bytes() == FILES[".codex/config.toml"]
    assert stat.S_IMODE((tmp_path / ".codex/config.toml").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / ".codex").stat().st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.json", ".codex"]


def test_links_of_an_earlier_life_are_not_followed(tmp_path: Path) -> None:
    """Neither as a directory nor as the file: what they lead to stays as it was."""
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (outside / "config.toml").write_text("mine")
    (outside / "target").write_text("mine")
    (home / ".codex").symlink_to(outside)
    (home / ".a.json").symlink_to(outside / "target")
    write_settings(home, FILES)
    assert (outside / "config.toml").read_text() == "mine"
    assert (outside / "target").read_text() == "mine"
    assert not (home / ".codex").is_symlink()
    assert (home / ".codex/config.toml").read_bytes() == FILES[".codex/config.toml"]
    assert (home / ".a.json").read_bytes() == FILES[".a.json"]


def test_what_is_in_the_way_is_removed(tmp_path: Path) -> None:
    """A file where a directory belongs, a full directory where a file belongs, a pipe, and a
    directory without permissions."""
    (tmp_path / ".codex").write_text("a file")
    (tmp_path / ".a.json" / "deep").mkdir(parents=True)
    write_settings(tmp_path, FILES)
    assert (tmp_path / ".codex/config.toml").read_bytes() == FILES[".codex/config.toml"]
    assert (tmp_path / ".a.json").read_bytes() == FILES[".a.json"]
    (tmp_path / ".a.json").unlink()
    os.mkfifo(tmp_path / ".a.json")
    (tmp_path / ".codex").chmod(0)
    write_settings(tmp_path, FILES)
    assert (tmp_path / ".a.json").read_bytes() == FILES[".a.json"]
    assert (tmp_path / ".codex/config.toml").read_bytes() == FILES[".codex/config.toml"]
