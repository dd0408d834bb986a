"""Checks that schemathesis makes of each response, beside its own. Loaded by it:
SCHEMATHESIS_HOOKS. `positive_data_acceptance` demands that a request which matches the document is
accepted. A document describes one value at a time; the rules below depend on state, or on two
values together, which JSON Schema cannot express. Each has its reason, and applies only where the
response is exactly that error."""

import re
from typing import Any

import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

# Codes that depend on the state of the box or on earlier requests of this caller: the same request may succeed at another time.
OF_STATE = {
    "precondition-failed": "the caller asked for another state than there is (If-Match, If-Unmodified-Since)",
    "range-not-satisfiable": "the object is shorter than the range",
    "patch-failed": "the patch does not fit what the object holds",
    "unsupported-patch": "the object is not JSON",
    "spawn-failed": "this box has no such profile, program or folder",
    "value-too-large": "a cap is in bytes of UTF-8 or of JSON text, a schema counts characters",
    "quota-exceeded": "the box is full",
    "sandbox-over": "the sandbox has ended",
    "rate-limited": "five sign-ins of this address have failed",
}
# (pointer, text of the error): a rule that one value alone cannot show.
OF_RULE = (
    (r"[/?]cursor", r".*", "a cursor is opaque: it is good only if this listing gave it"),
    (
        r".*",
        r"(contains a|holds a|must not (contain|hold)) NUL.*",
        "text without NUL, at any depth of any value",
    ),
    (
        r"/data",
        r"cannot be encoded as RFC 8785.*",
        "numbers at any depth, in the range that RFC 8785 has",
    ),
    (
        r"/(spec/)?not_before",
        r"must be an RFC 3339 time.*",
        "a leap second has no place in the box's time",
    ),
    (
        r"[/?](since|until)",
        r"must be an RFC 3339 time.*",
        "a leap second has no place in the box's time",
    ),
    (r".*", r"is nested deeper than \d+( levels)?", "depth of any value"),
    (r"/every", r".*", "the grammar of cron"),
    (r"\?(limit|cursor)", r"is for containers.*", "the path says whether there are pages"),
    (r"/path", r"(has a segment .*|must .*)", "bytes of UTF-8, and names that are the box's own"),
    (r"/key", r"(must have 1 to 512 bytes|has a segment that is \. or \.\.)", "bytes of UTF-8"),
    (r"/events/\d+/type", r"is reserved for the core.*", "types that only the core appends"),
    (r"/lease_id", r"holds another bead", "a lease id is of one bead"),
    (r"/spec/restart", r"must be never.*", "an AgentSpec of a task: it runs once"),
    (
        r"/(spec/)?argv",
        r"must name a program, unless.*",
        "who names an agent of the manifest leaves it out",
    ),
    (r"/constraints/\d+", r"(meets no grant|counts what).*", "a constraint against the policy"),
    (r"/input", r"needs a spec whose stdin is a pipe", "one member of a body against another"),
    (r"/limits/wall_seconds", r"is set by ttl_s", "a sandbox has one bound of its life"),
    (r"/ttl_s", r"must be from \d+ to \d+", "the manifest may allow less"),
    (r"", r"must have either token or code", "one member of a body against another"),
    (r"/user", r"must be the name of a user.*", "a user of this box"),
    (r"/filter", r"has \d+ conditions.*", "conditions are counted over all keys"),
)


@schemathesis.check
def valid_data_is_taken(ctx: Any, response: Any, case: Any) -> bool | None:
    """`positive_data_acceptance`, except for the errors listed above."""
    if _excused(response) or any(
        str(value) in ("", ".", "..") for value in (case.path_parameters or {}).values()
    ):
        return None  # a client drops such a segment: it requested another path than the document's
    return positive_data_acceptance(ctx, response, case)


@schemathesis.check
def a_refusal_is_a_problem(ctx: Any, response: Any, case: Any) -> None:
    """RFC 9457, with the status of the response, and the id that the log uses for the request."""
    if response.status_code < 400 or case.operation.path == "/ready" or case.method == "HEAD":
        return
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["type"] == f"urn:agentbox:problem:{problem['code']}"
    assert (
        problem["instance"].removeprefix("urn:agentbox:request:")
        == response.headers["x-request-id"][0]
    )


def _excused(response: Any) -> bool:
    if not 400 <= response.status_code < 600:
        return False
    problem = response.json()
    if problem.get("code") in OF_STATE:
        return True
    rows = problem.get("errors") or ()
    return bool(rows) and all(
        any(
            re.fullmatch(at, row["pointer"]) and re.fullmatch(what, row["detail"])
            for at, what, _ in OF_RULE
        )
        for row in rows
    )
