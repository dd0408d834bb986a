"""The rendered pod template, run for real by `podman kube play` as a Pod, since it knows no
StatefulSet. What podman 4.3 does not accept is masked in `as_pod`, one line each, and nothing else
is changed."""

from __future__ import annotations

import base64
import json
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from agentbox.host.image.archive import BuildResult
from agentbox.plan.merge import GID
from agentbox.plan.model import Plan
from agentbox.plan.render.kubernetes.objects import kubernetes
from agentbox.plan.render.options import RenderOptions
from agentbox.plan.render.seccomp import seccomp_text
from harness.outcomes import NAME, Ran
from harness.waiting import wait_for

POD = f"{NAME}-pod"
_MOST = 16384  # of open files and of processes
TOKEN = "a-token-that-the-secret-holds-4c1f9a70"
SECRETS = (TOKEN, base64.b64encode(TOKEN.encode()).decode())
"""What the box may find in the file: podman 4.3 writes the data of a Secret as it stands, later ones decode it."""

Change = Callable[[dict[str, Any]], object]
"""What a test does to the pod's spec before it is played."""


class Pod:
    """A pod of one plan. Nothing of it remains after `running`."""

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        manifest: str,
        image: BuildResult,
        *,
        strict: bool = False,
        change: Change | None = None,
    ) -> None:
        self.folder, self.plan, self.image = folder, plan, image
        self.reference = f"localhost/agentbox@{image.manifest_digest}"
        text = kubernetes(
            plan, RenderOptions(self.reference, strict=strict), manifest=manifest.encode()
        )
        rows = {row["kind"]: row for row in yaml.safe_load_all(text)}
        self.manifest = folder / "agentbox.toml"
        self.manifest.write_text(rows["ConfigMap"]["data"]["agentbox.toml"])
        self.claims = [
            row["metadata"]["name"] for row in rows["StatefulSet"]["spec"]["volumeClaimTemplates"]
        ]
        self.memory: dict[Path, str] = {}  # directory of this host -> size
        template = rows["StatefulSet"]["spec"]["template"]
        if change is not None:
            change(template["spec"])
        self.document = self.as_pod(template)
        (folder / "pod.json").write_text(json.dumps(self.document))
        (folder / "agentbox.json").write_text(seccomp_text())
        (folder / "containers.conf").write_text(_containers_conf())

    def as_pod(self, template: dict[str, Any]) -> dict[str, Any]:
        """A Pod of the template. Every change is one that podman 4.3 forces."""
        spec = template["spec"]
        # A StatefulSet creates the claims; a Pod must name them.
        spec["volumes"] += [
            {"name": name, "persistentVolumeClaim": {"claimName": f"{POD}-{name}"}}
            for name in self.claims
        ]
        for volume in spec["volumes"]:
            if volume.pop("configMap", None):
                volume["hostPath"] = {
                    "path": str(self.manifest),
                    "type": "File",
                }  # a map's `subPath` is not supported
            if memory := volume.pop("emptyDir", None):
                # A memory volume would be a directory on disk, which the box reports: mounted as the kubelet mounts it.
                where = self.folder / volume["name"]
                self.memory[where] = memory["sizeLimit"]
                volume["hostPath"] = {"path": str(where), "type": "Directory"}
            if "secret" in volume:
                volume["secret"]["optional"] = False  # an optional one is never mounted
                volume["secret"]["defaultMode"] = (
                    0o444  # `fsGroup`, by which the box's user reads it, is not supported
                )
        for mount in spec["containers"][0]["volumeMounts"]:
            mount.pop("subPath", None)
        ports = spec["containers"][0].pop(
            "ports"
        )  # would be published on every address of this host
        numbers = {one["name"]: one["containerPort"] for one in ports}
        for probe in (
            "startupProbe",
            "livenessProbe",
            "readinessProbe",
        ):  # which Podman 5 looks up among the ports
            asked = spec["containers"][0][probe]["httpGet"] = dict(
                spec["containers"][0][probe]["httpGet"]
            )
            asked["port"] = numbers[asked["port"]]
        profile = spec["securityContext"].pop(
            "seccompProfile"
        )  # read from the annotation of old releases only
        annotation = {
            "container.seccomp.security.alpha.kubernetes.io/agentbox": f"localhost/{profile['localhostProfile']}"
        }
        # An annotation's value may have 63 characters here: the digests are removed.
        metadata = {
            "name": POD,
            "labels": template["metadata"]["labels"],
            "annotations": annotation,
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    @contextmanager
    def running(self) -> Iterator[Pod]:
        """Loads the image under the digest in the text, creates the Secret, plays the pod, and
        removes everything."""
        self.podman("pull", "--quiet", f"oci-archive:{self.image.path}")
        try:
            self.podman(
                "secret",
                "create",
                f"{self.plan.name}-secrets",
                "-",
                given=_secret(f"{self.plan.name}-secrets"),
            )
            for where, size in self.memory.items():
                where.mkdir()
                options = f"size={size.removesuffix('i')},mode=2777,gid={GID}"
                subprocess.run(
                    ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(where)], check=True
                )
            # No network: requests come from inside the box, as from its probes, and it boots without one.
            self.podman(
                "kube",
                "play",
                "--network=none",
                f"--seccomp-profile-root={self.folder}",
                str(self.folder / "pod.json"),
            )
            yield self
        finally:
            self.podman("pod", "rm", "--force", "--ignore", POD)
            if volumes := self._volumes():
                self.podman("volume", "rm", "--force", *volumes)
            self.podman("secret", "rm", f"{self.plan.name}-secrets", check=False)
            self.podman("image", "rm", "--force", self.reference)
            for where in filter(Path.is_mount, self.memory):
                subprocess.run(["umount", str(where)], check=True)

    def _volumes(self) -> list[str]:
        names = [
            row["Name"] for row in json.loads(self.podman("volume", "ls", "--format=json").out)
        ]
        ours = {f"{POD}-{name}" for name in self.claims} | {f"{self.plan.name}-secrets"}
        return [name for name in names if name in ours]

    def podman(self, *words: str, given: str = "", check: bool = True) -> Ran:
        env = {**os.environ, "CONTAINERS_CONF": str(self.folder / "containers.conf")}
        argv = ["podman", *words]
        done = subprocess.run(
            argv, input=given, env=env, capture_output=True, text=True, check=False, timeout=180
        )
        assert not check or done.returncode == 0, f"{argv}: {done.stderr}"
        return Ran(done.returncode, done.stdout, done.stderr)

    def run(self, *argv: str) -> Ran:
        """A program in the box's container."""
        return self.podman("exec", f"{POD}-agentbox", *argv, check=False)

    def get(self, path: str, *headers: str) -> Any:
        """The JSON of one response of the API, requested from inside; None while it does not answer
        with 200."""
        words = [word for header in headers for word in ("--header", header)]
        ran = self.run(
            "/usr/bin/curl",
            "-fsS",
            "--max-time",
            "3",
            *words,
            f"http://127.0.0.1:{self.plan.api.port}{path}",
        )
        return json.loads(ran.out) if ran.code == 0 else None

    def wait_ready(self, seconds: float) -> Any:
        return wait_for(
            lambda: self.get("/ready"), seconds, lambda: f"ready; log {self.log()[-6:]}"
        )

    def wait_for_event(self, name: str, seconds: float) -> Any:
        return wait_for(
            lambda: self.events(name), seconds, lambda: f"{name}; log {self.log()[-6:]}"
        )

    def log(self) -> list[str]:
        return self.podman("logs", f"{POD}-agentbox").out.splitlines()

    def events(self, name: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.log() if line.startswith("{")]
        return [row for row in rows if row.get("event") == name]


def _containers_conf() -> str:
    """podman needs more than this host's hard limits, which not even root may raise everywhere."""
    kinds = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    hard = {name: resource.getrlimit(kind)[1] for name, kind in kinds.items()}
    bound = {name: _MOST if limit < 0 else min(limit, _MOST) for name, limit in hard.items()}
    return f"[containers]\ndefault_ulimits = {json.dumps([f'{name}={n}:{n}' for name, n in bound.items()])}\n"


def _secret(name: str) -> str:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "data": {"AGENTBOX_API_TOKEN": SECRETS[1]},
    }
    return json.dumps(secret)
