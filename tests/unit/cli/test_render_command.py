"""`agentbox render`: shows, writes and compares."""

import json
from pathlib import Path

import pytest
from click import UsageError
from click.testing import CliRunner, Result
from support.plans import lock_of, manifest_bytes

from agentbox.host.cli.main import cli
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import load
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.render.kubernetes.security import PodSecurityError

IMAGE = "agentbox:1@sha256:" + "a" * 64


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A manifest, its lock and a state directory."""
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "agentbox.toml").write_bytes(manifest_bytes())
    (tmp_path / "agentbox.lock").write_bytes(
        serialize_lock(lock_of(("build", "core"), "x86_64-linux", "aarch64-linux"))
    )
    return tmp_path


def _render(folder: Path, *arguments: str, json_output: bool = False) -> Result:
    flags = ["--json"] if json_output else []
    return CliRunner().invoke(
        cli,
        ["--manifest", str(folder / "agentbox.toml"), *flags, "render", *arguments],
        standalone_mode=False,
    )


def test_a_dash_is_stdout(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory of that name is made; there is nothing to compare with."""
    monkeypatch.chdir(tmp_path)
    assert _render(folder, "env", "--out", "-").output == _render(folder, "env").output
    assert not Path("-").exists()
    refused = _render(folder, "env", "--out", "-", "--check").exception
    assert isinstance(refused, UsageError)
    assert "give their directory with --out" in refused.message


@pytest.mark.parametrize(
    ("target", "start"),
    [
        ("compose", "# dclint"),
        ("supervisord", "; Generated"),
        ("probes", "{"),
        ("podman", "podman\nrun\n"),
        ("env", "COMPOSE_"),
    ],
)
def test_without_out_the_text_is_shown(folder: Path, target: str, start: str) -> None:
    """One file, as it would be written."""
    found = _render(folder, target)
    assert found.return_value == 0
    assert found.output.startswith(start)


def test_check_finds_a_changed_byte_and_names_it(folder: Path) -> None:
    """0 after writing; 1 with a diff after a line was edited by hand, and when a file is missing."""
    out = ["--out", str(folder / "out"), "--image-ref", IMAGE]
    assert _render(folder, "all", *out).return_value == 0
    assert _render(folder, "all", *out, "--check").return_value == 0
    conf = folder / "out/supervisord.conf"
    conf.write_text(conf.read_text().replace("minfds=1024", "minfds=1023"))
    found = _render(folder, "all", *out, "--check")
    assert found.return_value == 1
    assert "-minfds=1023\n+minfds=1024" in found.output
    assert conf.read_text().count("minfds=1023") == 1
    conf.unlink()
    found = _render(folder, "all", *out, "--check", json_output=True)
    assert json.loads(found.output)["different"] == ["supervisord.conf"]


def test_check_of_a_box_looks_at_what_up_writes(folder: Path) -> None:
    """Other targets have no files to check: a usage error names what to give."""
    assert _render(folder, "compose", "--check").return_value == 1
    found = _render(folder, "probes", "--check")
    assert "give the directory to check with --out" in str(found.exception)


def test_kubernetes_needs_a_digest_and_all_says_what_it_leaves_out(folder: Path) -> None:
    """Alone it is a usage error; with a digest both pin it."""
    found = _render(folder, "kubernetes")
    assert "nodes pull by digest" in str(found.exception)
    found = _render(folder, "all", "--out", str(folder / "out"))
    assert found.return_value == 0
    assert "kubernetes omitted" in found.output
    assert not (folder / "out/kubernetes.yaml").exists()
    assert (
        _render(folder, "all", "--out", str(folder / "out"), "--image-ref", IMAGE).return_value == 0
    )
    assert (folder / "out/kubernetes.yaml").read_text().count("\n---\n") == 5


def test_a_project_folder_is_mounted_where_a_folder_can_be(folder: Path) -> None:
    """In the dev container's compose file; a pod refuses it."""
    project = folder / "project"
    project.mkdir()
    flags = ["--project", str(project), "--image-ref", IMAGE]
    assert _render(folder, "devcontainer", *flags, "--out", str(folder / "out")).return_value == 0
    assert f"source: {project}" in (folder / "out/docker-compose.yml").read_text().replace("'", "")
    assert "a directory of this host" in str(_render(folder, "kubernetes", *flags).exception)


def test_an_exception_that_pod_security_does_not_admit_must_be_allowed(folder: Path) -> None:
    """Exit 1 names exception, level and field; the level that it names is enough."""
    text = (
        "[skills.browser]\nplaywright = true\n[security]\naudit_acknowledged = true\n"
        '[security.exceptions.playwright]\ncap_add = ["CHOWN"]\nreason = "a test of what widens"\n'
    )
    (folder / "agentbox.toml").write_bytes(manifest_bytes(text))
    features = enabled_features(load(folder / "agentbox.toml"), load_features())
    (folder / "agentbox.lock").write_bytes(
        serialize_lock(lock_of(features, "x86_64-linux", "aarch64-linux"))
    )
    refused = _render(folder, "kubernetes", "--image-ref", IMAGE).exception
    assert isinstance(refused, PodSecurityError)
    assert refused.exit_code == 1
    assert "security.exceptions.playwright needs baseline" in refused.message
    assert "capabilities.add CHOWN" in refused.message
    assert (
        _render(folder, "kubernetes", "--image-ref", IMAGE, "--allow-psa", "baseline").return_value
        == 0
    )


def test_strict_is_written_into_what_starts_the_box(folder: Path) -> None:
    """Without the flag it is off; and only a pod is told that it is one."""
    arguments = ["--out", str(folder / "out"), "--image-ref", IMAGE]
    texts = {}
    for flags in ([], ["--strict"]):
        assert _render(folder, "all", *arguments, *flags).return_value == 0
        names = ("docker-compose.yml", "kubernetes.yaml", "podman-run.txt")
        texts[bool(flags)] = {name: (folder / "out" / name).read_text() for name in names}
    strict = {
        "docker-compose.yml": "AGENTBOX_STRICT: '1'",
        "kubernetes.yaml": "- name: AGENTBOX_STRICT\n              value: '1'",
        "podman-run.txt": "--env=AGENTBOX_STRICT=1",
    }
    assert {name: words in texts[True][name] for name, words in strict.items()} == dict.fromkeys(
        strict, True
    )
    assert {name: words in texts[False][name] for name, words in strict.items()} == dict.fromkeys(
        strict, False
    )
    assert [name for name, text in texts[False].items() if "AGENTBOX_TARGET" in text] == [
        "kubernetes.yaml"
    ]
