"""Mutants of rendered texts: one error planted where one judge of RC-025 must see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextMutant:
    """In `file`, `old` becomes `new`; the validator then reports something that matches `says`."""

    judge: str
    name: str
    file: str
    old: str
    new: str
    says: str

    def __str__(self) -> str:
        return f"RC-025-{self.judge}-{self.name}"


_COMPOSE, _POD, _RULES = "docker-compose.yml", "kubernetes.yaml", "prometheus-rules.yml"
_ARGV, _EDITOR = "podman-run.txt", ".devcontainer.json"

MUTANTS = (
    TextMutant("compose-lint", "escalation", _COMPOSE, "      - 'no-new-privileges:true'\n", "", "no-new-privileges"),
    TextMutant("compose-spec", "unknown-key", _COMPOSE, "    cap_drop:", "    cap_dorp:", "cap_dorp"),
    TextMutant("dclint", "order", _COMPOSE, "    init: false\n    ipc: private\n", "    ipc: private\n    init: false\n", "service-keys-order"),
    TextMutant("kubernetes-validate", "unknown-field", _POD, "enableServiceLinks", "enableServiceLink", "enableServiceLink"),
    TextMutant("kubernetes-validate", "wrong-type", _POD, "replicas: 1", "replicas: one", "'one' is not of type"),
    TextMutant("pod-security", "root", _POD, "runAsNonRoot: true", "runAsNonRoot: false", "Running as Non-root"),
    TextMutant("pod-security", "unconfined", _POD, "type: Localhost", "type: Unconfined", "Seccomp"),
    TextMutant("promtool", "expression", _RULES, "agentbox_ready{", "agentbox_ready{{", "parse error"),
    TextMutant("grants", "compose-capability", _COMPOSE, "    cap_drop:", "    cap_add: [NET_RAW]\n    cap_drop:", "NET_RAW"),
    TextMutant("grants", "compose-port", _COMPOSE, "    ports:\n", "    ports:\n      - '22000:22000'\n", "0.0.0.0:22000"),
    TextMutant("grants", "podman-mount", _ARGV, "--ipc=private", "--ipc=private\n--mount=type=bind,source=/,target=/host", "/host"),
    TextMutant("grants", "podman-variable", _ARGV, "--ipc=private", "--ipc=private\n--env=TOKEN=x", "TOKEN"),
    TextMutant("grants", "kubernetes-variable", _POD, "          env:\n", "          env:\n            - {name: TOKEN, value: x}\n", "TOKEN"),
    TextMutant("grants", "kubernetes-policy", _POD, "              agentbox.org/client: 'true'", "              {}", "everybody"),
    TextMutant("grants", "editor-as-root", _EDITOR, '"remoteUser": "agentbox"', '"remoteUser": "root"', "root"),
)  # fmt: skip
