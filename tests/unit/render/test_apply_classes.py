"""What a change of one key alters, for every key: `live` and `boot` neither image nor engine, `recreate` not the image."""

import copy
import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import tomli_w
from support.plans import SYSTEM, lock_of
from yaml import safe_load_all

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.oci.config import image_config
from agentbox.host.packages.lock_inputs import lock_inputs
from agentbox.manifest.alternatives import alternative_values
from agentbox.manifest.declarations.key_path import split_names
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.keys import apply_class, effective_values
from agentbox.manifest.load import Manifest, parse
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.model import Plan
from agentbox.plan.render.targets import TARGETS, RenderInput

MANY = tomllib.loads((CHECKOUT / "tests/rules/full.toml").read_text())
IN_THE_BOX = {
    "plan",
    "probes",
    "supervisord",
}  # files of layer `config`: the boot derives them again
FEATURES = load_features()
IMAGE = f"agentbox:x@sha256:{'0' * 64}"


def manifest_of(document: Mapping[str, Any]) -> Manifest:
    """The manifest of that document, known to be valid."""
    manifest = parse(tomli_w.dumps(document).encode(), "x")
    assert manifest.findings == ()
    return manifest


def document_with(path: str, value: Any = None) -> dict[str, Any]:
    """The manifest of every key with one of them set (None: absent), and its partner of an `_env` and `_file` pair absent."""
    document = copy.deepcopy(MANY)
    table = document
    *parents, name = split_names(path)
    for parent in parents:
        table = table.setdefault(parent, {})
    table.pop(partner(name), None)
    if value is not None:
        table[name] = value
    return document


def partner(name: str) -> str:
    """The other key of a pair; "" for a key that has none."""
    stem, _, kind = name.rpartition("_")
    return f"{stem}_{'file' if kind == 'env' else 'env'}" if kind in ("env", "file") else ""


def plan_of(manifest: Manifest) -> Plan:
    lock = lock_of(enabled_features(manifest, FEATURES))
    return build_plan(manifest, FEATURES, serialize_lock(lock), lock, SYSTEM)


def masked(text: str, plan: Plan) -> str:
    """Without the digests that name one exact manifest and one exact plan."""
    for digest in (plan.digest, plan.digests.manifest, plan.digests.lock):
        text = text.replace(digest, "<digest>").replace(
            digest.removeprefix("sha256:")[:12], "<digest12>"
        )
    return text


def engine(manifest: Manifest) -> dict[str, str]:
    """The input of a container engine or a cluster. The manifest's own text and the NetworkPolicy
    are left out."""
    plan = plan_of(manifest)
    bare = replace(plan, exceptions=tuple(replace(delta, devices=()) for delta in plan.exceptions))
    found: dict[str, str] = {}
    for name in sorted(set(TARGETS) - IN_THE_BOX):
        shown = bare if name == "kubernetes" else plan  # a cluster refuses plain devices
        for path, text in TARGETS[name](RenderInput(shown, b"", IMAGE)).items():
            found[path] = masked(_without_network_policy(path, text.decode()), shown)
    return found


def _without_network_policy(path: str, text: str) -> str:
    if not path.startswith("kubernetes"):
        return text
    objects = [item for item in safe_load_all(text) if item["kind"] != "NetworkPolicy"]
    assert len(objects) > 3
    return json.dumps(objects, indent=1)


def recipe(manifest: Manifest) -> str:
    """The contents of the image without its layer `config`: packages, and the config that engines
    read."""
    plan = plan_of(manifest)
    config = image_config(json.loads(json.dumps(plan.to_json())), [], "", "amd64", plan.digest)
    config["config"]["Labels"].pop("org.agentbox.manifest-digest")
    return masked(
        json.dumps([lock_inputs(manifest, features=FEATURES).digest(), config], indent=1), plan
    )


@cache
def before(path: str = "") -> Manifest:
    """The manifest of every key; without the pair that the key is half of."""
    name = path.rpartition(".")[2]
    return manifest_of(document_with(path) if partner(name) else MANY)


@cache
def engine_before(path: str) -> dict[str, str]:
    return engine(before(path))


@cache
def recipe_before(path: str) -> str:
    return recipe(before(path))


def changed(path: str) -> Manifest:
    """The same with another value of that key, and nothing else."""
    present = effective_values(before(path))[path]
    found = manifest_of(document_with(path, next(alternative_values(path, present))))
    assert effective_values(found)[path] != present
    return found


def pair(path: str) -> str:
    """What `before` depends on: most keys share one base."""
    return path if partner(path.rpartition(".")[2]) else ""


KEYS = [path for path in effective_values(before()) if path != "meta.schema_version"]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("path", [path for path in KEYS if apply_class(path) in ("live", "boot")])
def test_a_live_or_boot_key_alters_nothing_outside_of_the_box(path: str) -> None:
    """Image recipe, compose, Kubernetes and every other engine's input are byte-equal."""
    manifest = changed(path)
    assert engine(manifest) == engine_before(pair(path))
    assert recipe(manifest) == recipe_before(pair(path))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", [path for path in KEYS if apply_class(path) == "recreate"])
def test_a_recreate_key_keeps_the_image(path: str) -> None:
    """The same layers but `config`, and the same image config."""
    assert recipe(changed(path)) == recipe_before(pair(path))


def test_the_comparison_can_tell() -> None:
    """A name and a limit show in the engine's input; a port and a package in the recipe."""
    for path in (
        "meta.name",
        "resources.memory",
        "resources.pids",
        "api.publish_address",
        "api.token_env",
    ):
        assert engine(changed(path)) != engine_before(pair(path)), path
    for path in ("api.port", "image.extra_packages", "observability.metrics_port"):
        assert recipe(changed(path)) != recipe_before(pair(path)), path
