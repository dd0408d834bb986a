"""Other people's programs read the archive: docker, podman and skopeo, in both of its spellings."""

import json
import subprocess
from pathlib import Path

import locked_packages
import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.archive import BuildResult
from agentbox.host.image.nix_build import build


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    """The image of this checkout."""
    locked_packages.bring()
    return build(CHECKOUT, out_link=tmp_path_factory.mktemp("built") / "image")


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_docker_loads_it(built: BuildResult) -> None:
    """Under its tag, with the config's digest as id, the layers' diff ids, and the user and labels of the config."""
    run("docker", "load", "--quiet", "--input", str(built.path))
    found = json.loads(run("docker", "image", "inspect", built.tag))[0]
    assert found["Id"] == built.image_id
    assert found["RootFS"]["Layers"] == [layer.diff_id for layer in built.layers]
    assert found["Config"]["User"] == "1000:1000"
    assert found["Config"]["Labels"]["org.agentbox.plan-digest"] == built.plan_digest
    assert found["Architecture"] in ("amd64", "arm64")


def test_docker_runs_it(built: BuildResult) -> None:
    """As uid 1000 on a read-only root without network, the image's Python imports the modules of
    the control plane."""
    run("docker", "load", "--quiet", "--input", str(built.path))
    said = run(
        "docker", "run", "--rm", "--read-only", "--network", "none", "--cap-drop", "ALL",
        "--entrypoint", "/opt/agentbox/venv/bin/python", built.tag, "-I", "-c",
        "import apsw, httptools, starlette, supervisor, uvicorn, uvloop, os, ssl, agentbox.box.boot.main as m;"
        "print(os.getuid(), m.__cached__.endswith('.pyc') and os.path.exists(m.__cached__),"
        "ssl.create_default_context().cert_store_stats()['x509_ca'] > 100)",
    )  # fmt: skip
    assert said.split() == ["1000", "True", "True"]


def test_podman_loads_it(built: BuildResult) -> None:
    """With the same id that docker assigns to it."""
    run("podman", "load", "--quiet", "--input", str(built.path))
    found = json.loads(run("podman", "image", "inspect", f"localhost/{built.tag}"))[0]
    assert f"sha256:{found['Id']}" == built.image_id
    run("podman", "image", "rm", "--force", f"localhost/{built.tag}")


@pytest.mark.parametrize("transport", ["oci-archive", "docker-archive"])
def test_skopeo_reads_both_spellings(built: BuildResult, transport: str) -> None:
    """Both lead to the same layers; read as OCI the manifest digest is the build's."""
    found = json.loads(run("skopeo", "inspect", f"{transport}:{built.path}"))
    assert found["Os"] == "linux"
    assert found["Labels"]["org.agentbox.closure-digest"] == built.closure_digest
    if transport == "oci-archive":
        assert found["Digest"] == built.manifest_digest
        assert found["Layers"] == [layer.digest for layer in built.layers]
    assert len(found["Layers"]) == len(built.layers)


def test_the_archive_is_a_copy_of_nothing_local(built: BuildResult) -> None:
    """Neither its name nor its text contains the path of the build."""
    head = Path(built.path).read_bytes()[:65536]
    assert str(CHECKOUT).encode() not in head
    assert b"/nix/store" not in head
