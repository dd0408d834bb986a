"""agentbox.plan.render.build: the files of layer `config`, as a Nix derivation makes them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.plans import SYSTEM, manifest_bytes

from agentbox.core.canonical import digest
from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import UNGATED, load_features
from agentbox.manifest.skills.corpus import shipped_digests
from agentbox.plan.lockfile.model import DebEntry, Lock, WheelEntry
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.model import Plan

SHA = "0" * 64
SERVED = '[adapters]\npods.use = "off"\nmemory.use = "off"\n'  # what this release serves


def _lock() -> Lock:
    """Every package that the features without a gate need, with invented hashes."""
    features = [load_features()[name] for name in UNGATED]
    debs = [(name, feature.name) for feature in features for name in feature.debian]
    wheels = [(name, feature.name) for feature in features for name in feature.pypi]
    rows = {name: [owner for other, owner in debs if other == name] for name, _ in debs}
    return Lock(
        inputs=f"sha256:{SHA}",
        source="debian",
        suite="trixie",
        python="3.13",
        systems=(SYSTEM,),
        features=UNGATED,
        skills=shipped_digests(),
        debian={
            "amd64": tuple(
                DebEntry(
                    name=name,
                    version="1",
                    file=f"{name}.deb",
                    size=1,
                    sha256=SHA,
                    features=tuple(sorted(owners)),
                )
                for name, owners in sorted(rows.items())
            )
        },
        wheels=tuple(
            WheelEntry(
                name=name,
                version="1",
                file=f"{name}.whl",
                size=1,
                sha256=SHA,
                arch=("amd64",),
                features=(owner,),
            )
            for name, owner in sorted(wheels)
        ),
    )


def _run(folder: Path, manifest: bytes, *more: str) -> subprocess.CompletedProcess[str]:
    """As nix/run.py starts it: isolated, its own directories only."""
    (folder / "agentbox.toml").write_bytes(manifest)
    (folder / "agentbox.lock").write_bytes(serialize_lock(_lock()))
    start = "import runpy, sys; sys.path[:0] = [sys.argv.pop(1)]; runpy.run_module('agentbox.plan.render.build', run_name='__main__', alter_sys=True)"
    files = [
        f"--{name}={folder / file}"
        for name, file in (("manifest", "agentbox.toml"), ("lock", "agentbox.lock"))
    ]
    argv = [
        sys.executable,
        "-I",
        "-B",
        "-c",
        start,
        str(CHECKOUT),
        *files,
        "--system",
        SYSTEM,
        "--out",
        str(folder / "out"),
        *more,
    ]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_layer_holds_what_boot_reads_and_its_digests_agree(tmp_path: Path) -> None:
    """plan.json has the digest that build.json, probes.json and the image label have."""
    done = _run(
        tmp_path,
        manifest_bytes(SERVED + '[skills.corpus]\ninclude = ["git-history"]\n'),
        "--test-hooks",
    )
    assert (done.returncode, done.stderr) == (0, "")
    share = tmp_path / "out/opt/agentbox/share"
    plan = Plan.from_json(json.loads((share / "plan.json").read_text()))
    record = json.loads((share / "build.json").read_text())
    assert plan.test_hooks
    assert record["test_hooks"] is True
    assert record["digests"]["plan"] == plan.digest
    assert json.loads((share / "probes.json").read_text())["plan_digest"] == plan.digest
    assert record["digests"]["probes"] == digest((share / "probes.json").read_bytes())
    conf = (tmp_path / "out/etc/supervisord.conf").read_bytes()
    assert record["digests"]["supervisord"] == digest(conf)
    assert record["digests"]["manifest"] == digest((share / "agentbox.toml").read_bytes())
    assert record["digests"]["lock"] == digest((share / "agentbox.lock").read_bytes())
    found = sorted(
        str(path.relative_to(tmp_path / "out"))
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    )
    assert found == [
        "etc/supervisord.conf",
        "opt/agentbox/share/agentbox.lock",
        "opt/agentbox/share/agentbox.toml",
        "opt/agentbox/share/build.json",
        "opt/agentbox/share/plan.json",
        "opt/agentbox/share/probes.json",
        "opt/agentbox/share/skills.json",
        "opt/agentbox/skills/git-history/SKILL.md",
    ]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[api]\nport = 9091\n", 2, "E013"),
        ("[resources]\nmemry = 1\n", 2, "resources.memry"),
        ("[resources]\nstop_seconds = 10\n", 2, "resources.stop_seconds allows 10"),
    ],
)
def test_a_manifest_with_errors_makes_no_image(
    tmp_path: Path, text: str, code: int, said: str
) -> None:
    """The build fails with the finding, not with a traceback, and writes nothing."""
    done = _run(tmp_path, manifest_bytes(SERVED + text))
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
