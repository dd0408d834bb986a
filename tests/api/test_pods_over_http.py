"""Pods over HTTP: bodies, conditions, ranges, containers (RFC 9110, LDP 1.0)."""

import uuid
from collections.abc import Iterator
from email.utils import formatdate

import httpx
import pytest
from helpers import pods_of
from raw import ask
from support.api_box import TOKEN, ApiBox

BODY = bytes(range(256)) * 16


@pytest.fixture(scope="module")
def http(box: ApiBox) -> Iterator[httpx.Client]:
    with pods_of(box) as client:
        yield client


@pytest.fixture
def folder(http: httpx.Client) -> str:
    """A container of this test's own."""
    return f"t{uuid.uuid4().hex[:8]}/"


def test_a_body_comes_back_as_it_was(http: httpx.Client, folder: str) -> None:
    """Verbatim type, strong tag, and headers that let no browser run it."""
    made = http.put(f"{folder}a", content=BODY, headers={"Content-Type": 'image/x-odd; q="1"'})
    again = http.put(f"{folder}a", content=BODY, headers={"Content-Type": 'image/x-odd; q="1"'})
    found = http.get(f"{folder}a")
    assert (made.status_code, again.status_code, found.status_code) == (201, 204, 200)
    assert found.content == BODY
    assert found.headers["content-type"] == 'image/x-odd; q="1"'
    assert found.headers["etag"] == made.headers["etag"] == again.headers["etag"]
    assert found.headers["etag"].startswith('"')
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["content-security-policy"] == "sandbox"
    assert found.headers["content-length"] == str(len(BODY))


def test_head_is_get_without_a_body(http: httpx.Client, folder: str) -> None:
    """The same headers, for an object and for a container."""
    http.put(f"{folder}a", content=BODY)
    for path in (f"{folder}a", folder):
        get, head = http.get(path), http.head(path)
        assert head.content == b""
        assert {**head.headers, "date": "", "x-request-id": ""} == {
            **get.headers,
            "date": "",
            "x-request-id": "",
        }


@pytest.mark.parametrize("size", [3 << 20, (1 << 20) + 1])
def test_a_large_body_is_streamed(http: httpx.Client, folder: str, size: int) -> None:
    """Both ways, chunked or of known length."""
    body = uuid.uuid4().bytes * (size // 16 + 1)
    pieces = (body[at : at + 70_000] for at in range(0, len(body), 70_000))
    assert http.put(f"{folder}a", content=pieces).status_code == 201
    assert http.get(f"{folder}a").content == body


@pytest.mark.parametrize(
    ("wanted", "status", "part", "told"),
    [
        ("bytes=0-0", 206, slice(0, 1), "bytes 0-0/4096"),
        ("bytes=10-19", 206, slice(10, 20), "bytes 10-19/4096"),
        ("bytes=4000-", 206, slice(4000, None), "bytes 4000-4095/4096"),
        ("bytes=4000-9999", 206, slice(4000, None), "bytes 4000-4095/4096"),
        ("bytes=-6", 206, slice(-6, None), "bytes 4090-4095/4096"),
        ("bytes=-9999", 206, slice(0, None), "bytes 0-4095/4096"),
        ("bytes=4096-", 416, slice(0, 0), "bytes */4096"),
        ("bytes=-0", 416, slice(0, 0), "bytes */4096"),
        ("bytes=5-4", 200, slice(0, None), None),
        ("bytes=0-1,5-6", 200, slice(0, None), None),
        ("lines=0-1", 200, slice(0, None), None),
    ],
)
def test_ranges(
    http: httpx.Client, folder: str, wanted: str, status: int, part: slice, told: str | None
) -> None:
    """One range of bytes; an invalid range is ignored, one outside is 416 with the size."""
    http.put(f"{folder}a", content=BODY)
    found = http.get(f"{folder}a", headers={"Range": wanted})
    assert (found.status_code, found.headers.get("content-range")) == (status, told)
    if status != 416:
        assert found.content == BODY[part]


def test_a_range_only_of_what_the_reader_knows(http: httpx.Client, folder: str) -> None:
    """If-Range with the tag returns the part, with another tag or a date the complete body."""
    tag = http.put(f"{folder}a", content=BODY).headers["etag"]
    for known, status in (
        (tag, 206),
        ('"other"', 200),
        (f"W/{tag}", 200),
        (formatdate(usegmt=True), 200),
    ):
        found = http.get(f"{folder}a", headers={"Range": "bytes=0-1", "If-Range": known})
        assert found.status_code == status


def test_a_reader_that_has_it_gets_304(http: httpx.Client, folder: str) -> None:
    """By tag (weak comparison) or by date; by GET and by HEAD; without a body but with the tag."""
    made = http.put(f"{folder}a", content=BODY)
    tag, date = made.headers["etag"], made.headers["last-modified"]
    for method in ("GET", "HEAD"):
        for condition in (
            {"If-None-Match": f'"x", W/{tag}'},
            {"If-None-Match": "*"},
            {"If-Modified-Since": date},
        ):
            found = http.request(method, f"{folder}a", headers=condition)
            assert (found.status_code, found.content, found.headers["etag"]) == (304, b"", tag)
        old = {"If-None-Match": '"x"', "If-Modified-Since": date}
        assert http.request(method, f"{folder}a", headers=old).status_code == 200
        assert http.request(
            method, f"{folder}a", headers={"If-Modified-Since": formatdate(0, usegmt=True)}
        ).is_success


def test_changes_hold_to_their_conditions(http: httpx.Client, folder: str) -> None:
    """412 with the current tag, and nothing changed; a weak tag never matches."""
    tag = http.put(f"{folder}a", content=b"1", headers={"If-None-Match": "*"}).headers["etag"]
    long_ago = formatdate(0, usegmt=True)
    for condition in (
        {"If-Match": '"x"'},
        {"If-Match": f"W/{tag}"},
        {"If-Unmodified-Since": long_ago},
    ):
        for method in ("PUT", "DELETE", "GET"):
            refused = http.request(
                method, f"{folder}a", headers=condition, content=b"2" if method == "PUT" else None
            )
            assert (refused.status_code, refused.headers["etag"]) == (412, tag)
    assert http.put(f"{folder}a", content=b"2", headers={"If-None-Match": "*"}).status_code == 412
    assert http.put(f"{folder}none", content=b"2", headers={"If-Match": "*"}).status_code == 412
    assert http.get(f"{folder}a").content == b"1"
    assert http.put(f"{folder}a", content=b"2", headers={"If-Match": tag}).status_code == 204
    assert (
        http.delete(
            f"{folder}a", headers={"If-Unmodified-Since": formatdate(usegmt=True)}
        ).status_code
        == 204
    )
    assert http.get(f"{folder}a").status_code == 404


def test_a_patch_is_applied_or_refused(http: httpx.Client, folder: str) -> None:
    """204 with the new tag; 415 with Accept-Patch for another type; 422 with the index of what failed."""
    tag = http.put(
        f"{folder}a", content=b'{"n":1}', headers={"Content-Type": "application/json"}
    ).headers["etag"]
    kind = {"Content-Type": "application/json-patch+json"}
    done = http.patch(
        f"{folder}a", content=b'[{"op":"replace","path":"/n","value":2}]', headers=kind
    )
    assert (done.status_code, http.get(f"{folder}a").json()) == (204, {"n": 2})
    assert done.headers["etag"] != tag
    refused = http.patch(
        f"{folder}a", content=b"[]", headers={"Content-Type": "application/merge-patch+json"}
    )
    assert (refused.status_code, refused.headers["accept-patch"]) == (
        415,
        "application/json-patch+json",
    )
    failed = http.patch(
        f"{folder}a", content=b'[{"op":"test","path":"/n","value":9}]', headers=kind
    )
    assert (failed.status_code, failed.json()["index"]) == (422, 0)
    assert http.get(f"{folder}a").json() == {"n": 2}


def test_options_say_what_may_be_done(http: httpx.Client, folder: str) -> None:
    """For an object, for a path where nothing is yet, for a container."""
    http.put(f"{folder}a", content=b"1")
    for path in (f"{folder}a", f"{folder}none"):
        found = http.options(path)
        assert (found.status_code, found.headers["accept-patch"]) == (
            204,
            "application/json-patch+json",
        )
        assert found.headers["accept-put"] == "*/*"
        assert set(found.headers["allow"].split(", ")) == {
            "GET",
            "HEAD",
            "OPTIONS",
            "PUT",
            "PATCH",
            "DELETE",
        }
    assert "PUT" not in http.options(folder).headers["allow"]


def test_a_container_is_told_as_asked(http: httpx.Client, folder: str) -> None:
    """Turtle by default; JSON-LD and JSON have the same members; 406 for anything else."""
    for name in ("one", "deep/two", "odd%20name%C3%A9"):
        http.put(f"{folder}{name}", content=b"123")
    turtle = http.get(folder)
    assert turtle.headers["content-type"] == "text/turtle"
    assert f"ldp:contains </v1/pods/{folder}odd%20name%C3%A9>" in turtle.text
    assert "posix:size 3" in turtle.text
    assert (
        "<http://www.w3.org/ns/iana/media-types/application/octet-stream#Resource>" in turtle.text
    )
    assert 'rel="type"' in turtle.headers["link"]
    linked = http.get(folder, headers={"Accept": "text/turtle;q=0.1, application/ld+json"}).json()
    members = {one["@id"] for one in linked[0]["http://www.w3.org/ns/ldp#contains"]}
    page = http.get(folder, headers={"Accept": "application/json"}).json()
    assert {httpx.URL(one).path.removeprefix("/v1/pods/") for one in members} == {
        row["path"] for row in page["items"]
    }
    assert [row["kind"] for row in page["items"]] == ["container", "object", "object"]
    assert http.get(folder, headers={"Accept": "image/png"}).status_code == 406


def test_a_long_container_is_paged_by_links(http: httpx.Client, folder: str) -> None:
    """`Link: rel=next` leads through every member once."""
    names = [f"{folder}{n}" for n in range(7)]
    for name in names:
        http.put(name, content=b"")
    found: list[str] = []
    url: str | None = f"{folder}?limit=3"
    while url is not None:
        page = http.get(url, headers={"Accept": "application/json"})
        found += [row["path"] for row in page.json()["items"]]
        following = page.links.get("next")
        url = f"{folder}{following['url']}" if following else None
    assert found == names


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("PUT /v1/pods/a%2Fb HTTP/1.1\nContent-Length: 1", 400),
        ("PUT /v1/pods/a%ff HTTP/1.1\nContent-Length: 1", 400),
        ("PUT /v1/pods/a/../b HTTP/1.1\nContent-Length: 1", 400),
        ("PUT /v1/pods/a%00 HTTP/1.1\nContent-Length: 1", 400),
        ("PUT /v1/pods/a/ HTTP/1.1\nContent-Length: 1", 400),
        ("PUT /v1/pods/ HTTP/1.1\nContent-Length: 1", 400),
        ("PUT /v1/pods/a HTTP/1.1\nContent-Encoding: gzip\nContent-Length: 1", 415),
        ("PUT /v1/pods/a HTTP/1.1\nContent-Range: bytes 0-0/9\nContent-Length: 1", 400),
        (f"PUT /v1/pods/a HTTP/1.1\nContent-Length: {1 << 40}", 413),
        ("GET /v1/pods/none HTTP/1.1", 404),
        ("GET /v1/pods/none/ HTTP/1.1", 404),
        ("GET /v1/pods/none?limit=1 HTTP/1.1", 400),
        ("GET /v1/pods/?limit=0 HTTP/1.1", 400),
        ("POST /v1/pods/a HTTP/1.1\nContent-Length: 1", 405),
    ],
)
def test_what_is_refused(box: ApiBox, head: str, status: int) -> None:
    """Never normalised, with a problem."""
    answer = ask(
        box.plan.api.port, f"{head}\nAuthorization: Bearer {TOKEN}", b"x" if "PUT" in head else b""
    )
    assert (answer.status, answer.json()["status"]) == (status, status)


def test_a_body_that_nobody_reads_ends_the_connection(box: ApiBox) -> None:
    """It is not drained, whatever length it announces."""
    head = f"PUT /v1/pods/a HTTP/1.1\nContent-Encoding: gzip\nContent-Length: {1 << 20}\nAuthorization: Bearer {TOKEN}"
    assert ask(box.plan.api.port, head, b"x").headers["connection"] == "close"
