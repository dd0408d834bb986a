"""RC-041: a network whose only way out is a proxy that reads TLS with an authority of its own, and
asks for a user. In it: an agent's curl, git, pip and npm, a model call, lock and fetch. Column H."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from harness.agents import client_of, wait_served
from harness.checkout import unlocked
from harness.mirror import Mirror
from harness.mirrored_packages import serving
from harness.outcomes import MANIFEST, NAME, Options
from harness.process import ProcessBox
from support.authority import Authority
from support.closed_network import ClosedNetwork, closed_network
from support.intercepting_proxy import InterceptingProxy
from support.model_server import ModelServer
from support.package_index import PROJECT, make_index, serve_files

from agentbox.contracts.orchestrator import RunResult
from agentbox.core.paths import CHECKOUT
from agentbox.plan.model import Plan

FILES, MODELS, MIRROR = "files.example", "models.example", "mirror.example"
PASSWORD = "pa55 of jane"
ACCOUNT = f"jane:{PASSWORD}"
OWN_NAME = "agentbox-rc-proxy"  # a network of its own: it may run beside another box
PROXY_PORT = 19128
PAGE = (CHECKOUT / "docs/howto/behind-a-proxy.md").read_text()
ADDRESS, FILE = "http://proxy.corp.example:3128", "/etc/ssl/corp.pem"  # those of the page
AGENTS = f"""
[providers.models]
enabled = true
base_url = "https://{MODELS}/v1"
env_var = "MODEL_KEY"

[agents.worker]
command = ["/bin/sh"]
profile = "standard"
provider = "models"
"""
SECRETS = {"PROXY_ACCOUNT": ACCOUNT, "MODEL_KEY": "operator-key-0123456789abcdef"}
LINES = {
    "curl": f"curl -fsS https://{FILES}/hello.txt",
    "git": f"git ls-remote https://{FILES}/repository.git HEAD",
    "pip": f"{sys.executable} -m pip download -q --no-cache-dir --no-deps -d $TMPDIR "
    f"--index-url https://{FILES}/simple {PROJECT} && ls $TMPDIR",
    "npm": f"npm view behind-proxy version --fetch-retry-mintimeout 500 "
    f"--registry https://{FILES}/npm/",
    "model": 'curl -fsS "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer '
    '$OPENAI_API_KEY" -d \'{"model":"small-1","max_tokens":50,"messages":'
    '[{"role":"user","content":"Hi."}]}\'',
}
ANSWERS = {
    "curl": "hello",
    "git": "\tHEAD",
    "pip": "behind_proxy-1.0",
    "npm": "1.0.0",
    "model": "Hello there.",
}


def make_site(directory: Path) -> None:
    """What `files.example` serves: a file, a repository, a package index, an npm registry."""
    make_index(directory)
    (directory / "hello.txt").write_text("hello\n")
    repository = directory / "repository.git"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example", "-C", str(directory / "work")]
    (directory / "work").mkdir()
    for words in (
        [*git, "init", "-q"],
        [*git, "commit", "-q", "--allow-empty", "-m", "one"],
        ["git", "clone", "-q", "--bare", str(directory / "work"), str(repository)],
        ["git", "-C", str(repository), "update-server-info"],
    ):
        subprocess.run(words, check=True, capture_output=True)
    (directory / "npm").mkdir()
    version = {"name": "behind-proxy", "version": "1.0.0", "dist": {"tarball": "https://x.example"}}
    document = {
        "name": "behind-proxy",
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": version},
    }
    (directory / "npm/behind-proxy").write_text(json.dumps(document))


class Place:
    """The closed network with its proxy, and a box in it."""

    def __init__(self, network: ClosedNetwork, proxy: InterceptingProxy, directory: Path) -> None:
        self.network, self.proxy, self.directory = network, proxy, directory
        self.authority = directory / "root.pem"

    def of_the_page(self, number: int) -> str:
        """A manifest of docs/howto/behind-a-proxy.md, with the address and file of the test."""
        blocks: list[str] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        own = blocks[number].replace(FILE, str(self.authority))
        assert own != blocks[number]
        return "\n" + own.replace(ADDRESS, f"http://127.0.0.1:{PROXY_PORT}")

    @contextmanager
    def box(self, alter: Callable[[Plan], Plan] | None = None) -> Iterator[ProcessBox]:
        """One that serves."""
        manifest = MANIFEST.replace(NAME, OWN_NAME) + self.of_the_page(1) + AGENTS
        box = ProcessBox(self.directory, Options(manifest=manifest, secrets=SECRETS, alter=alter))
        try:
            self.network.run(box.start)
            self.network.run(lambda: wait_served(box))
            yield box
        finally:
            box.remove()

    def agent(self, box: ProcessBox, script: str) -> RunResult:
        """What came of an agent that runs the script; its errors are in its output."""

        def work() -> RunResult:
            spec = {"name": "worker", "agent": "worker"}
            with client_of(box) as client:
                given = f"exec 2>&1; cd $TMPDIR; {script}\n".encode()
                return client.agents.run_once(spec, stdin=given)

        return self.network.run(work)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """A Debian archive and a package index, over plain HTTP."""
    with serving(tmp_path_factory.mktemp("mirror")) as served:
        yield served


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, mirror: Mirror) -> Iterator[Place]:
    """One for all lines."""
    directory = tmp_path_factory.mktemp("place")
    make_site(directory / "site")
    authority = Authority(directory)
    with (
        closed_network() as network,
        serve_files(directory / "site") as files,
        ModelServer() as models,
    ):
        servers = {FILES: files, MODELS: port_of(models.url), MIRROR: port_of(mirror.url)}
        proxy = InterceptingProxy(authority, servers, ACCOUNT)
        with proxy.listen(network.listener(PROXY_PORT)):
            yield Place(network, proxy, directory)


@pytest.fixture(scope="module")
def box(place: Place) -> Iterator[ProcessBox]:
    """One for all lines."""
    with place.box() as started:
        yield started


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def agent_reaches(place: Place, box: ProcessBox, tool: str) -> None:
    """Through the gateway and the proxy, by name, trusting the operator's authority."""
    seen = len(place.proxy.seen)
    run = place.agent(box, LINES[tool])
    assert ANSWERS[tool] in run.stdout.decode(), run.stdout.decode()
    asked = place.proxy.seen[seen:]
    assert {item.line for item in asked} == {
        f"CONNECT {MODELS if tool == 'model' else FILES}:443 HTTP/1.1"
    }
    assert {item.account for item in asked} == {ACCOUNT}


@pytest.mark.parametrize("tool", LINES)
def test_rc_041_an_agent_reaches_others(place: Place, box: ProcessBox, tool: str) -> None:
    """Each with its own way to name authorities and proxies."""
    agent_reaches(place, box, tool)


def test_rc_041_the_password_stays_with_the_box(place: Place, box: ProcessBox) -> None:
    """Not in an agent's environment, nor where it may read; in no command line, plan, log or
    event."""
    file = box.paths.outgoing
    assert PASSWORD in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o400
    secret = box.paths.mounted_secrets / "PROXY_ACCOUNT"
    run = place.agent(box, f"env; cat {file}; cat {secret}")
    said = run.stdout.decode()
    assert "SSL_CERT_FILE=" in said
    assert said.count("Permission denied") == 2, said
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in box.members()]
    journal = json.dumps(place.network.run(box.journal))
    texts = (said, box.paths.plan.read_text(), "".join(box.log_lines()), journal, str(lines))
    for form in (PASSWORD, quote(PASSWORD), base64.b64encode(ACCOUNT.encode()).decode()):
        assert [text for text in texts if form in text] == []


@pytest.mark.parametrize("host", ["other.example", "203.0.113.7", "x.files.example"])
def test_rc_041_only_exact_names_are_left_to_the_proxy(
    place: Place, box: ProcessBox, host: str
) -> None:
    """Whatever the proxy would make of them: it is not asked."""
    seen = len(place.proxy.seen)
    run = place.agent(box, f"curl -sS https://{host}/")
    assert "403" in run.stdout.decode()
    assert place.proxy.seen[seen:] == []


def test_rc_041_lock_and_fetch(place: Place, mirror: Mirror, tmp_path: Path) -> None:
    """apt, pip and downloads of its own; without the authority the certificate is named."""
    checkout = unlocked(tmp_path, mirror)
    checkout.use(f"https://{MIRROR}")
    network = place.of_the_page(0)
    manifest = checkout.manifest.read_text()
    line = next(line for line in network.splitlines() if line.startswith("ca_bundle"))
    checkout.manifest.write_text(manifest + network.replace(line, ""))
    (checkout.source / ".env").write_text(f"PROXY_ACCOUNT={ACCOUNT}\n")
    said = place.network.run(lambda: checkout.run("lock", code=4))
    assert f'the certificate that {MIRROR} showed is not trusted here (issuer "Corp CA")' in said
    assert "Set AGENTBOX_CA_BUNDLE or [network] ca_bundle." in said
    checkout.manifest.write_text(manifest + network)
    seen = len(place.proxy.seen)
    assert "added 10" in place.network.run(lambda: checkout.run("lock"))
    assert "added" in place.network.run(lambda: checkout.run("fetch"))
    assert PASSWORD not in said + checkout.lock.read_text()
    assert {item.line.split(" ")[1] for item in place.proxy.seen[seen:]} == {f"{MIRROR}:443"}


def without_authority(plan: Plan) -> Plan:
    """The mutant: a boot that makes no bundle of the operator's certificates."""
    assert plan.network is not None
    return replace(plan, network=replace(plan.network, ca_bundle=""))


def test_rc_041_a_box_without_the_authority_is_seen(place: Place) -> None:
    """The lines above fail for that reason, and for no other."""
    with place.box(without_authority) as broken, pytest.raises(AssertionError, match="certificate"):
        agent_reaches(place, broken, "curl")
