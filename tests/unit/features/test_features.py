"""Feature files, ports, memory file systems, and the choices of this release."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from reference.features import COMMAND, TARGET, page

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import enabled_features, features_dir, load_features
from agentbox.manifest.features.model import Feature, FixedPort, Gate, SecurityExceptionNeed
from agentbox.manifest.features.ports import free_port, port_table
from agentbox.manifest.features.supported_choices import AVAILABLE, UNREAD, gates
from agentbox.manifest.features.tmpfs import baseline_mounts, total_bytes
from agentbox.manifest.keys import keys, map_paths
from agentbox.manifest.load import parse
from agentbox.manifest.model import Model
from agentbox.manifest.schema.generator import properties, resolve_reference, schema_at
from agentbox.manifest.types import Size
from agentbox.plan.model import Probe

FILES = sorted(features_dir().glob("*.toml"))
MINIMAL = b"[meta]\nschema_version = 1\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_fits_the_schema(path: Path) -> None:
    """schema/feature.schema.json closes every table of it."""
    import tomllib

    schema = json.loads((CHECKOUT / "schema/feature.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    assert list(Draft202012Validator(schema).iter_errors(tomllib.loads(path.read_text()))) == []


def test_core_and_build_are_always_on() -> None:
    """And nothing else in the smallest manifest."""
    assert enabled_features(parse(MINIMAL, "x"), load_features()) == ("build", "core")


def test_every_gate_is_a_key_and_every_exception_too() -> None:
    """What a feature names exists in the schema."""
    exceptions = {
        path.split(".")[2] for path, _ in properties() if path.startswith("security.exceptions.")
    }
    for feature in load_features().values():
        assert feature.gate is None or feature.gate.key in {*keys(), *map_paths()}
        assert feature.exception is None or feature.exception.key in exceptions


def test_every_feature_with_a_layer_has_a_probe() -> None:
    """`build` is in no layer; probe ids are unique and produce records of the plan."""
    ids = []
    for name, feature in load_features().items():
        assert feature.probes or name == "build"
        for probe in feature.probes:
            fields = {key: value for key, value in probe.items() if key != "optional"}
            ids.append(Probe(feature=name, **fields).id)
    assert ids
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources = [", "feature file"),
        ('sources = ["debian"]\nsystms = []\n', "unknown key systms"),
        ('sources = ["debian"]\n', "needs a gate"),
        ('[gate]\nkey = "meta.dev"\nvalue = true\n[[ports]]\nprot = 1\n', "prot"),
    ],
)
def test_a_broken_file_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    """Never skipped: exit code 2 with the file and the reason."""
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(AgentboxError) as raised:
        load_features(tmp_path)
    assert raised.value.exit_code == 2
    assert "odd.toml" in raised.value.message
    assert said in raised.value.message


def test_a_gate_turns_a_feature_on(tmp_path: Path) -> None:
    """One value, or any of a list."""
    (tmp_path / "dev.toml").write_text('[gate]\nkey = "meta.dev"\nvalue = true\n')
    (tmp_path / "logs.toml").write_text(
        '[gate]\nkey = "observability.log_level"\nvalue = ["trace", "debug"]\n'
    )
    features = load_features(tmp_path)
    assert enabled_features(parse(MINIMAL, "x"), features) == ()
    assert enabled_features(
        parse(MINIMAL + b'dev = true\n[observability]\nlog_level = "debug"\n', "x"), features
    ) == (
        "dev",
        "logs",
    )


def test_a_switch_holds_a_gate_shut(tmp_path: Path) -> None:
    """`when` is for a key that has a value though its table is off."""
    text = '[gate]\nkey = "observability.log_level"\nvalue = "info"\nwhen = "meta.dev"\n'
    (tmp_path / "quiet.toml").write_text(text)
    features = load_features(tmp_path)
    assert enabled_features(parse(MINIMAL, "x"), features) == ()
    assert enabled_features(parse(MINIMAL + b"dev = true\n", "x"), features) == ("quiet",)


def test_port_table() -> None:
    """Only listeners that are on; fixed ports of features by feature and name."""
    jupyter = Feature(
        name="jupyter",
        gate=Gate(key="meta.dev", values=(True,)),
        ports=(FixedPort(name="http", port=8888),),
        exception=SecurityExceptionNeed(key="desktop", need="advised"),
    )
    rows = port_table(Model(), {"jupyter": jupyter}, ["jupyter"])
    assert [(row.owner, row.port, row.published) for row in rows] == [
        ("api.port", 9090, True),
        ("observability.metrics_port", 9091, True),
        ("gateway", 9093, False),
        ("jupyter:http", 8888, True),
    ]
    assert free_port(rows, 9090) == 9092
    assert free_port(rows, 65535) == 1024


def test_baseline_mounts() -> None:
    """Five, and their sum with the default sizes."""
    mounts = baseline_mounts(Size("256MiB"), Size("128MiB"))
    assert [mount.target for mount in mounts] == [
        "/run",
        "/tmp",
        "/var/log",
        "/var/log/supervisor",
        "/var/run",
    ]
    assert total_bytes(mounts) == (64 + 256 + 128 + 64 + 16) << 20


def test_what_this_release_serves_is_in_the_schema() -> None:
    """Every key exists, and every value is one that the schema accepts."""
    for key, choices in AVAILABLE.items():
        schema = schema_at(key)
        assert schema is not None, key
        assert set(choices) <= set(
            resolve_reference(schema.get("items", schema)).get("enum", (True, False))
        )


def test_what_nothing_reads_is_in_the_schema() -> None:
    """A row of a key that does not exist would refuse nothing."""
    assert set(UNREAD) <= set(keys())
    assert not set(UNREAD) & set(AVAILABLE)


def test_gates() -> None:
    """The switches of the tables of capabilities; other keys of them are no gates."""
    assert {"toolchains.node", "gpu.backend", "desktop.enabled", "skills.docs.latex"} <= set(
        gates()
    )
    assert not {
        "desktop.port",
        "desktop.stack",
        "skills.corpus.include",
        "skills.browser.headed",
    } & set(gates())
    assert set(gates()) <= set(keys())


def test_the_page_is_fresh() -> None:
    """docs/features.md is generated."""
    assert TARGET.read_text(encoding="utf-8") == page(), f"run {COMMAND}"
