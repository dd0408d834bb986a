"""The image config (OCI image-spec 1.1 config.md): entry point, environment, and labels that link
the image to the plan.
"""

from typing import Any

from agentbox.core.canonical import digest

_EPOCH = "1970-01-01T00:00:00Z"
_ENTRYPOINT = ["/opt/agentbox/venv/bin/python", "-I", "-m", "agentbox.box.boot"]
_PATH = "/opt/agentbox/venv/bin:/usr/local/bin:/usr/bin"
_SECOND = 1_000_000_000  # the unit of Healthcheck is a nanosecond


def closure_digest(diff_ids: list[str]) -> str:
    """SHA-256 of the layers' diff ids in order, one per line."""
    return digest("".join(f"{diff_id}\n" for diff_id in diff_ids).encode())


def image_config(
    plan: dict[str, Any], layers: list[dict[str, Any]], revision: str, arch: str, plan_digest: str
) -> dict[str, Any]:
    """Return the image config of a plan. `layers` are layer descriptors with `name`, in order."""
    closure = closure_digest([layer["diff_id"] for layer in layers])
    return {
        "architecture": arch,
        "os": "linux",
        "created": _EPOCH,
        "config": {
            "User": "1000:1000",
            "Entrypoint": _ENTRYPOINT,
            "WorkingDir": "/workspace",
            "StopSignal": "SIGTERM",
            "Env": [
                f"PATH={_PATH}",
                "LANG=C.UTF-8",
                # as in passwd; agents cannot write it: curl, git, bash and Python read
                # configuration there
                "HOME=/var/lib/agentbox/home",
                # one heap a program: each further one of a thread keeps a MiB that is not used
                "MALLOC_ARENA_MAX=1",
                f"AGENTBOX_CLOSURE_DIGEST={closure}",
                f"AGENTBOX_REVISION={revision}",
            ],
            "ExposedPorts": {
                f"{port['port']}/tcp": {} for port in plan["ports"] if port["publish"]
            },
            "Healthcheck": _healthcheck(plan["api"]["port"]),
            "Labels": _labels(plan, closure, revision, plan_digest),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer["diff_id"] for layer in layers]},
        "history": [
            {"created": _EPOCH, "created_by": f"agentbox layer {layer['name']}"} for layer in layers
        ],
    }


def _healthcheck(port: int) -> dict[str, Any]:
    url = f"http://127.0.0.1:{port}/ready"
    return {
        "Test": ["CMD", "/usr/bin/curl", "-fsS", "-o", "/dev/null", "--max-time", "3", url],
        "Interval": 10 * _SECOND,
        "Timeout": 5 * _SECOND,
        "StartPeriod": 30 * _SECOND,
        "Retries": 3,
    }


def _labels(plan: dict[str, Any], closure: str, revision: str, plan_digest: str) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": "agentbox",
        "org.opencontainers.image.version": plan["version"],
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.agentbox.manifest-digest": plan["digests"]["manifest"],
        "org.agentbox.plan-digest": plan_digest,
        "org.agentbox.lock-digest": plan["digests"]["lock"],
        "org.agentbox.closure-digest": closure,
        "org.agentbox.seccomp-digest": plan["digests"]["seccomp"],
        "org.agentbox.test-hooks": "true" if plan["test_hooks"] else "false",
    }
