"""The page for reviews in a real browser: what a person sees and does, and what an agent's text can do there."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser import Page, browser
from helpers import read_all, sh, text
from support.api_box import TOKEN, ApiBox

from agentbox.client import BoxClient

HOSTILE = r"""
mkdir -p .github/workflows; echo 'run: x' > .github/workflows/ci.yml
printf '<script>document.title="owned"</script>\n<img src=x onerror=alert(1)>\n\033[2J\033]0;owned\007\342\200\256gnp.exe\n' > plain.txt
printf x > "$(printf '<img src=x onerror=alert(2)>\033]0;x\007.html')"
printf x > '"><script>alert(3)<\057script>'
ln -s ../../etc/passwd out
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture(autouse=True)
def _clean(box: ApiBox, client: BoxClient, page: Page) -> Iterator[None]:
    yield
    for one in client.reviews.list().items:
        client.reviews.discard(one.agent_id)
    subprocess.run(["rm", "-rf", *map(str, box.paths.workspace.iterdir())], check=True)
    page.find("sessionStorage.clear()")
    page.told.clear()


def run(client: BoxClient, script: str) -> str:
    """The agent of a task that succeeded."""
    items, task = read_all(client, client.submit_task(sh(script)).task_id)
    assert task.state == "succeeded", text(items, "stderr")
    assert task.agent_id is not None
    return task.agent_id


IDLE = (
    "!document.body.hasAttribute('aria-busy')"  # one action at a time: a busy page accepts no other
)


def idle(page: Page) -> None:
    """The requested action is done."""
    page.until(IDLE)


def enter(page: Page, box: ApiBox, token: str = TOKEN) -> None:
    """By the keyboard: the field has the focus when the page opens."""
    page.go(f"{box.url}/ui/review")
    page.until(
        f"document.activeElement.id === 'token' && document.getElementById('box').textContent && {IDLE}"
    )
    page.type(token)
    page.press("Enter")


def see(page: Page, selector: str) -> str:
    """Its text, once it is displayed."""
    name = json.dumps(selector)
    return str(
        page.until(
            f"document.querySelector({name})?.checkVisibility() && document.querySelector({name}).innerText"
        )
    )


def first(page: Page) -> None:
    """Opens the first of the list: it has the focus after the token."""
    see(page, "#list button")
    idle(page)
    page.until("document.activeElement.dataset.agent")
    page.press("Enter")
    see(page, "#changes .path")
    idle(page)


def decide(page: Page, button: str) -> None:
    """Commit or discard, and yes."""
    idle(page)
    page.find(f"document.getElementById('{button}').click()")
    see(page, "#consequence")
    page.find("document.getElementById('sure').click()")


def test_a_change_is_read_and_taken_by_keyboard(box: ApiBox, client: BoxClient, page: Page) -> None:
    """Token, list, changes with those that run by themselves first, a diff, and a commit that needs
    confirmation."""
    (box.paths.workspace / "text").write_text("one\ntwo\nthree\n")
    agent = run(client, "sed -i s/two/2/ text; mkdir .vscode; echo {} > .vscode/tasks.json")
    enter(page, box)
    first(page)
    assert agent in see(page, "#agent")
    assert page.find("[...document.querySelectorAll('#changes .path')].map((one) => one.textContent)") == [".vscode/tasks.json", "text"]  # fmt: skip
    assert "an editor runs it" in see(page, "#changes .runs")
    assert page.find("[...document.querySelectorAll('#changes details:nth-child(2) pre span')].map((one) => [one.className, one.textContent])") == [
        ["hunk", "@@ -1,3 +1,3 @@"], ["same", " one"], ["minus", "-two"], ["plus", "+2"], ["same", " three"],
    ]  # fmt: skip
    page.press("j", "j")
    assert page.find("document.activeElement.querySelector('.path').textContent") == "text"
    page.press("Enter")
    page.until("!document.activeElement.parentElement.open")
    page.find("document.getElementById('commit').focus()")
    page.press("Enter")
    assert "1 file among them will be run" in see(page, "#consequence")
    page.press("Enter")  # the focus is on Cancel
    idle(page)
    assert (box.paths.workspace / "text").read_text() == "one\ntwo\nthree\n"
    page.press("Enter")
    see(page, "#consequence")
    page.press("Tab", "Enter")
    page.until(
        "document.getElementById('status').textContent === '2 files changed in the workspace.'"
    )
    assert (box.paths.workspace / "text").read_text() == "one\n2\nthree\n"
    assert see(page, "#none") == "No agent has left changes."
    assert page.troubles == []


def test_an_agent_s_text_does_nothing(box: ApiBox, client: BoxClient, page: Page) -> None:
    """Names and lines with markup, scripts, terminal escapes and bidirectional text are shown
    escaped, and cause no request, dialog or element."""
    agent = run(client, HOSTILE)
    enter(page, box)
    first(page)
    names = page.find(
        "[...document.querySelectorAll('#changes .path')].map((one) => one.textContent)"
    )
    assert names[0] == ".github/workflows/ci.yml"
    assert {
        "<img src=x onerror=alert(2)>\\x1b]0;x\\x07.html",
        '"><script>alert(3)<\\057script>',
    } <= set(names)
    shown = page.find("document.getElementById('changes').innerText")
    for words in (
        '+<script>document.title="owned"</script>',
        "+<img src=x onerror=alert(1)>",
        "+\\x1b[2J\\x1b]0;owned\\x07\\u202egnp.exe",
    ):
        assert words in shown
    assert "out: a link out of the workspace" in see(page, "#left")
    assert (
        page.find(
            "document.querySelectorAll('#review :is(img, script, iframe, a, style, object)').length"
        )
        == 0
    )
    assert page.find("document.scripts.length") == 1
    assert page.find("document.title") == "Review - agentbox"
    assert (
        page.find(
            "[...document.body.innerText].filter((one) => /[\\p{Cc}\\p{Cf}]/u.test(one) && one !== '\\n' && one !== '\\t')"
        )
        == []
    )
    assert page.troubles == []
    assert {url for url in page.requests if not url.startswith(f"{box.url}/")} <= {"about:blank"}
    assert client.reviews.list().items[0].agent_id == agent


def test_the_policy_holds_though_the_page_had_a_hole(box: ApiBox, page: Page) -> None:
    """Markup made of text, a script in an attribute, a request elsewhere and code from text: the browser refuses each."""
    page.go(f"{box.url}/ui/review")
    tries = {
        "markup": "document.body.innerHTML = '<b>x</b>'",
        "line": "document.body.setAttribute('onclick', 'window.owned = 1'); document.body.click(); if (!window.owned) throw new Error()",
        "elsewhere": "await fetch('http://127.0.0.1:1/')",
        "code": "new Function('return 1')()",
    }
    for name, script in tries.items():
        held = page.find(
            f"(async () => {{ try {{ {script}; return 'done' }} catch (error) {{ return 'held' }} }})()"
        )
        assert held == "held", name
    refused = [one["entry"]["text"] for one in page.troubles if "entry" in one]
    for words in ("TrustedHTML", "TrustedScript", "connect-src"):
        assert any(words in one for one in refused), (words, refused)


def test_a_conflict_and_another_digest_are_said(box: ApiBox, client: BoxClient, page: Page) -> None:
    """The paths by name, and nothing applied; the page stays at the review."""
    (box.paths.workspace / "file").write_text("old")
    run(client, "echo agent > file")
    enter(page, box)
    first(page)
    (box.paths.workspace / "file").write_text("mine")
    decide(page, "commit")
    assert see(page, "#error li").startswith("file: ")
    assert (box.paths.workspace / "file").read_text() == "mine"
    decide(page, "discard")
    page.until("document.getElementById('status').textContent === 'Discarded.'")
    assert client.reviews.list().items == ()


def test_the_token_stays_in_the_tab(box: ApiBox, client: BoxClient, page: Page) -> None:
    """A wrong token is requested again; a valid one survives a reload of this tab and is in no URL,
    cookie or persistent storage; a caller that may not decide gets a message."""
    run(client, "echo x > file")
    enter(page, box, "wrong")
    assert "unknown" in see(page, "#error h2")
    assert page.find("sessionStorage.length") == 0
    reader = client.tokens.create("page-reader", ["agents:read"])
    page.until("document.activeElement.id === 'token'")
    page.find("document.getElementById('token').value = ''")
    page.type(reader.value)
    page.press("Enter")
    see(page, "#list button")
    page.go(f"{box.url}/ui/review")
    see(page, "#list button")
    stores = "[document.cookie, localStorage.length, location.href.includes(sessionStorage.getItem('agentbox.token'))]"
    assert page.find(stores) == ["", 0, False]
    idle(page)
    page.find("document.querySelector('#list button').click()")
    see(page, "#changes .path")
    decide(page, "discard")
    assert "reviews:write" in see(page, "#error h2")
    idle(page)
    page.find("document.getElementById('forget').click()")
    page.until("document.activeElement.id === 'token'")
    assert page.find(
        "[sessionStorage.length, document.querySelector('main').hidden, document.getElementById('changes').childElementCount]"
    ) == [0, True, 0]


def test_what_is_served(box: ApiBox) -> None:
    """Without a token, with a policy that names no other source; other names are 404, and the page is small."""
    with httpx.Client(base_url=box.url, trust_env=False) as http:
        found = {
            name: http.get(f"/ui/{name}")
            for name in ("review", "review.js", "elements.js", "review.css")
        }
        assert [one.status_code for one in found.values()] == [200] * 4
        policy = found["review"].headers["content-security-policy"]
        assert policy.startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
        )
        assert not {"unsafe", "http", "*", "data:"} & {
            word for word in ("unsafe", "http", "*", "data:") if word in policy
        }
        assert all(one.headers["x-content-type-options"] == "nosniff" for one in found.values())
        assert "http" not in found["review"].text.replace("http-equiv", "")
        assert sum(len(one.content) for one in found.values()) < 24_000
        for name in ("", "nothing", "..%2Freview.html", "review.html", "review%00"):
            assert http.get(f"/ui/{name}").status_code == 404
        assert http.post("/ui/review").status_code == 405


def test_pages_are_where_the_wheel_looks() -> None:
    """Each file of the directory is served under some name, and no other."""
    from agentbox.api.pages.pages import PAGES

    folder = Path(__file__).parents[2] / "agentbox/api/pages/static"
    assert {file for file, _ in PAGES.values()} == {one.name for one in folder.iterdir()}
