"""Operations of sessions of people."""

from agentbox.contracts.logins import LoginEndpoints, NewLogin
from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource

_SELF = ("session:self",)

LOGINS = Resource(
    "logins",
    LoginEndpoints,
    operations=(
        write(
            "sign_in",
            "POST /v1/session",
            "Makes a session from a token or a code: a cookie, and a key for the header "
            "Agentbox-Session-Key. For pages of this box: 403 for a request of another origin. "
            "429 after 5 failures within a minute.",
            scope=(),
            body=NewLogin,
            body_limit=4096,
            statuses=(201,),
        ),
        read("whoami", "GET /v1/session", "Who the caller is, and until when.", scope=_SELF),
        write(
            "sign_out",
            "DELETE /v1/session",
            "Ends the session that is sent, at once.",
            scope=_SELF,
            statuses=(204,),
        ),
        write(
            "make_own_code",
            "POST /v1/session/code",
            "Makes a code with which a page signs in as the caller once, within 60 seconds.",
            scope=_SELF,
        ),
        read(
            "list_logins",
            "GET /v1/logins",
            "The caller's sessions; with users:admin those of all.",
            scope=_SELF,
        ),
        write(
            "end",
            "DELETE /v1/logins/{id}",
            "Ends a session of the caller at once; with users:admin any.",
            route="end_login",
            scope=_SELF,
            statuses=(204,),
        ),
    ),
)
RESOURCES = (LOGINS,)
