"""The route table is complete and consistent."""

import re

import pytest

from agentbox.contracts.routes.registry import BY_NAME, ROUTES, SCOPES
from agentbox.contracts.routes.route import Route


def name_of(route: Route) -> str:
    return route.name


def test_names_and_places_are_unique() -> None:
    """No two rows share a name, or a method and path."""
    assert len(BY_NAME) == len(ROUTES) > 30
    assert len({(route.method, route.path, route.listener) for route in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_scopes_exist(route: Route) -> None:
    """A row demands scopes that a token can have."""
    assert set(route.scope) <= SCOPES


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_writes_need_a_write_scope(route: Route) -> None:
    """No row that changes something is public or is satisfied by a scope for reading, but for the
    one that a caller proves itself with.
    """
    # A query that is too long for a URL, and a check of minutes: both change nothing.
    reads = ("search_memory", "verify_events")
    if route.method not in ("GET", "OPTIONS") and route.name not in (*reads, "sign_in"):
        assert route.scope
        assert not any(scope.endswith(":read") for scope in route.scope)


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_slot_routes_have_the_prefix(route: Route) -> None:
    """All but the probes and the document of the API live under /v1."""
    assert route.path.startswith("/v1/") or route.name in {
        "livez",
        "ready",
        "health",
        "metrics",
        "openapi",
    }


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_bodies_are_read_where_a_record_is_named(route: Route) -> None:
    """A row that names a request record allows a body, and no other row does."""
    assert (route.body_limit != 0) == bool(route.request)


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_handlers_are_named_by_module_and_function(route: Route) -> None:
    """`<module>.<function>`, so that a reader finds the code."""
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", route.handler)


def test_no_lease_is_ever_in_a_url() -> None:
    """A lease id is an authority: it travels in bodies only."""
    for route in ROUTES:
        assert "lease_id" not in route.parameters
        assert not any("lease" in name for name in route.query)


def test_url_fills_and_quotes() -> None:
    """Parameters are percent-encoded, a slash too; absent query values are left out."""
    route = BY_NAME["add_dep"]
    assert route.url({"id": "a/b", "blocker": "c d"}) == "/v1/beads/a%2Fb/deps/c%20d"
    assert (
        BY_NAME["list_beads"].url(query={"status": "open", "cursor": None})
        == "/v1/beads?status=open"
    )


def test_the_rest_of_a_path_keeps_its_slashes() -> None:
    """What a client or a proxy would change on its way is refused instead; an encoded dot is a name like any other."""
    route = BY_NAME["read_pod"]
    assert route.parameters == ("path",)
    assert route.url({"path": "a/b c/%2e/\u00e9"}) == "/v1/pods/a/b%20c/%252e/%C3%A9"
    assert (route.url({"path": ""}), route.url({"path": "a/"})) == ("/v1/pods/", "/v1/pods/a/")
    for path in ("a//b", "/a", "/", "a/..", "./a", "..", "a/./b"):
        with pytest.raises(ValueError, match="segment"):
            route.url({"path": path})


@pytest.mark.parametrize(
    "name", [route.name for route in ROUTES if set(route.parameters) - {route.rest_parameter}]
)
@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_parameter_leads_to_no_other_route(name: str, value: str) -> None:
    """Segments that a client would remove from the path are rejected, for each parameter that is
    one segment."""
    route = BY_NAME[name]
    for parameter in set(route.parameters) - {route.rest_parameter}:
        with pytest.raises(ValueError, match="segment"):
            route.url({**dict.fromkeys(route.parameters, "x"), parameter: value})


def test_url_refuses_what_the_row_lacks() -> None:
    """A query name that the row lacks is a ValueError, a missing parameter a KeyError."""
    with pytest.raises(ValueError, match="no query parameter 'colour'"):
        BY_NAME["list_beads"].url(query={"colour": "red"})
    with pytest.raises(KeyError):
        BY_NAME["show_bead"].url()
