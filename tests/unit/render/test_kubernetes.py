"""kubernetes: what the API server's schemas accept, Pod Security's strictest level admits, and what the baseline of a box demands."""

import copy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.plans import manifest_bytes, plan_of

from agentbox.core.errors import ExitCode
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.kubernetes.objects import kubernetes
from agentbox.plan.render.kubernetes.security import PodSecurityError, violations
from agentbox.plan.render.options import RenderOptions
from agentbox.plan.render.yaml import Block, dump

IMAGE = "registry.example/agentbox@sha256:" + "a" * 64
MANIFESTS = {
    "default": "",
    "other values": (
        'meta = { schema_version = 1, name = "worker-7" }\n'
        '[resources]\ncpus = 0.5\nmemory = "768MiB"\nstop_seconds = 45\n[api]\nport = 8000\n'
        '[observability]\nmetrics_port = 8001\notlp_endpoint = "http://collector:4318"\n'
    ),
    "no secret": '[api]\ntoken_env = ""\n[mesh]\ntoken_env = ""\n',
}
VERSIONS = ("1.25", "1.31", kubernetes_validate.latest_version())


def _objects(text: str = "", **options: Any) -> dict[str, dict[str, Any]]:
    rendered = kubernetes(
        plan_of(text), RenderOptions(IMAGE), manifest=manifest_bytes(text), **options
    )
    return {row["kind"]: row for row in yaml.safe_load_all(rendered)}


def _pod(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = objects["StatefulSet"]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS.keys())
@pytest.mark.parametrize("version", VERSIONS)
def test_the_schemas_of_kubernetes_accept_every_object_strictly(text: str, version: str) -> None:
    """Of an old, a middle and the newest release; a misspelt field is rejected, so the validator
    does check."""
    objects = _objects(text)
    assert set(objects) == {
        "ConfigMap",
        "Service",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "StatefulSet",
    }
    for row in objects.values():
        kubernetes_validate.validate(row, version, strict=True)
    _pod(objects)["containers"][0]["securityContext"]["allowPrivilegeEscalatoin"] = False
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(objects["StatefulSet"], version, strict=True)


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_pod_security_restricted_admits_the_pod(text: str) -> None:
    """No violation; without the baseline's line there is one, so the validator does check."""
    template = _objects(text)["StatefulSet"]["spec"]["template"]
    assert violations(template) == ()
    broken = copy.deepcopy(template)
    del broken["spec"]["containers"][0]["securityContext"]["capabilities"]
    assert [row.control for row in violations(broken)] == ["Capabilities"]


def test_the_pod_is_confined_as_the_specification_says() -> None:
    """Every line of the baseline on the pod and its container."""
    pod = _pod(_objects())
    container = pod["containers"][0]
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert pod["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "Localhost", "localhostProfile": "agentbox.json"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "privileged": False,
        "readOnlyRootFilesystem": True,
    }  # fmt: skip
    assert (
        container["resources"]["requests"]
        == container["resources"]["limits"]
        == {"cpu": "2", "memory": "4096Mi"}
    )
    memory = {row["name"]: row["emptyDir"] for row in pod["volumes"] if "emptyDir" in row}
    assert {row["medium"] for row in memory.values()} == {"Memory"}
    paths = {row["mountPath"]: row for row in container["volumeMounts"]}
    assert {path for path, row in paths.items() if row["name"] in memory} == {
        "/run", "/tmp", "/var/log", "/var/log/supervisor", "/var/run"
    }  # fmt: skip
    assert paths["/etc/agentbox.toml"]["readOnly"] is True
    assert paths["/run/secrets"]["readOnly"] is True
    secret = next(row["secret"] for row in pod["volumes"] if "secret" in row)
    assert secret["defaultMode"] == 0o440
    assert pod["terminationGracePeriodSeconds"] == 30
    assert container["startupProbe"] == {
        "httpGet": {"path": "/livez", "port": "api"}, "periodSeconds": 1, "failureThreshold": 30
    }  # fmt: skip
    assert (
        container["livenessProbe"]["httpGet"]["path"],
        container["livenessProbe"]["periodSeconds"],
    ) == (
        "/livez",
        10,
    )
    assert container["readinessProbe"] == {
        "httpGet": {"path": "/ready", "port": "api"}, "periodSeconds": 5, "failureThreshold": 2
    }  # fmt: skip


def test_only_labelled_pods_come_in_and_only_dns_goes_out() -> None:
    """The default manifest names no destination."""
    policy = _objects()["NetworkPolicy"]["spec"]
    allowed = [
        (peer["podSelector"]["matchLabels"], rule["ports"])
        for rule in policy["ingress"]
        for peer in rule["from"]
        if set(peer) == {"podSelector"}
    ]
    assert allowed == [
        ({"agentbox.org/client": "true"}, [{"protocol": "TCP", "port": 9090}]),
        ({"agentbox.org/scrape": "true"}, [{"protocol": "TCP", "port": 9091}]),
    ]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [[53, 53]]
    assert policy["policyTypes"] == ["Ingress", "Egress"]


def test_a_slot_elsewhere_opens_its_port_and_nothing_of_the_node() -> None:
    """An address is let through alone; a name stands for any address but the node's own and the metadata service."""
    text = (
        '[adapters]\nbeads = { use = "external-http", endpoint = "https://beads.internal:8443" }\n'
        'events = { use = "external-http", endpoint = "http://10.1.2.3" }\n'
    )
    rules = _objects(text)["NetworkPolicy"]["spec"]["egress"][1:]
    blocks = {
        block["ipBlock"]["cidr"]: (block["ipBlock"], rule["ports"])
        for rule in rules
        for block in rule["to"]
    }
    assert set(blocks) == {"10.1.2.3/32", "0.0.0.0/0", "::/0"}
    assert blocks["10.1.2.3/32"][1] == [{"protocol": "TCP", "port": 80}]
    assert "169.254.0.0/16" in blocks["0.0.0.0/0"][0]["except"]
    assert blocks["0.0.0.0/0"][1] == [{"protocol": "TCP", "port": 8443}]


@pytest.mark.parametrize("reference", ["", "agentbox:1", "sha256:" + "a" * 64, "a@sha256:abc"])
def test_an_image_without_digest_is_refused(reference: str) -> None:
    """A tag can move between two nodes."""
    with pytest.raises(RenderError, match="nodes pull by digest"):
        kubernetes(plan_of(), RenderOptions(reference), manifest=manifest_bytes())


def test_a_name_that_is_no_dns_label_and_a_folder_of_this_host_are_refused() -> None:
    """Both are fine for compose."""
    text = 'meta = { schema_version = 1, name = "box-" }\n'
    with pytest.raises(RenderError, match="must be a DNS label"):
        kubernetes(plan_of(text), RenderOptions(IMAGE), manifest=manifest_bytes(text))
    with pytest.raises(RenderError, match="directory of this host"):
        kubernetes(plan_of(), RenderOptions(IMAGE, Path("/home/me")), manifest=manifest_bytes())


def test_a_changed_manifest_changes_the_pod_template() -> None:
    """A ConfigMap mounted by sub path never changes in a running pod: the digest in the template starts a new one."""
    one, other = (
        _objects(text)["StatefulSet"]["spec"]["template"]["metadata"]
        for text in ("", "[limits]\npids = 9\n")
    )
    assert one["labels"] == other["labels"]
    assert one["annotations"] != other["annotations"]


@given(st.text(alphabet=st.sampled_from("ab \n\t\r\"'\\:#|é\x85\u2028"), max_size=30))
def test_the_manifest_in_the_config_map_is_the_manifest(text: str) -> None:
    """Byte for byte: the box compares digests. Written as a block where a block can contain it."""
    assert yaml.safe_load(dump({"a": {"b": Block(text)}}))["a"]["b"] == text


def test_exit_code_of_a_level_that_is_not_allowed_is_a_finding() -> None:
    """1: checked and bad."""
    assert PodSecurityError("").exit_code == ExitCode.BAD
