"""A browser's side of a session: both halves, and the headers that Chromium sends."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import httpx

from agentbox.plan.model import Plan, SlotPlan
from support.api_box import TOKEN, ApiBox


class Browser:
    """Requests as a page of the box makes them. `headers` replace those of the page; None leaves
    one out.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=20)
        self.cookie, self.key, self.session = "", "", ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.http.close()

    def sign_in(
        self, headers: Mapping[str, str | None] | None = None, **body: str
    ) -> httpx.Response:
        """From `token=` or `code=`; keeps both halves of what it got."""
        response = self.send("POST", "/v1/session", headers, json=body)
        if response.status_code == 201:
            self.cookie = response.headers["set-cookie"].partition(";")[0].partition("=")[2]
            self.key = response.json()["key"]
            self.session = response.json()["identity"]["session"]["id"]
        return response

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str | None] | None = None,
        **more: Any,
    ) -> httpx.Response:
        """One request; the cookie jar of httpx is not used."""
        self.http.cookies.clear()
        return self.http.request(method, path, headers=self.headers(headers), **more)

    def headers(self, changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """What a page of the box sends."""
        sent: dict[str, str | None] = {
            "Origin": self.url,
            "Sec-Fetch-Site": "same-origin",
            "Sec-Fetch-Mode": "cors",
            "Cookie": f"agentbox_session={self.cookie}" if self.cookie else None,
            "Agentbox-Session-Key": self.key or None,
            **(changes or {}),
        }
        return {name: value for name, value in sent.items() if value is not None}


def signed_in(box: ApiBox, name: str) -> Browser:
    """The page of a user that exists, signed in by a login link's code."""
    with box.client() as client:
        code = client.users.make_code(name).code
    browser = Browser(box.url)
    assert browser.sign_in(code=code).status_code == 201
    return browser


def signed_in_operator(box: ApiBox) -> Browser:
    """The page of who has the first admin token."""
    browser = Browser(box.url)
    assert browser.sign_in(token=TOKEN).status_code == 201
    return browser


def problem(response: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return response.status_code, response.json()["code"]


def login_counts(box: ApiBox) -> dict[str, int]:
    """Sign-ins by outcome, as the metrics have them."""
    lines = httpx.get(f"{box.metrics_url}/metrics").text.splitlines()
    rows = [line for line in lines if line.startswith("agentbox_logins_total{")]
    return {row.split('"')[1]: int(float(row.split()[-1])) for row in rows}


def without_agents(plan: Plan) -> Plan:
    """The plan with the slot of agents off."""
    slots = {**plan.slots, "orchestrator": SlotPlan(use="off", required=False)}
    return replace(plan, slots=slots)
