"""Sessions of people over HTTP."""

import re

from starlette.responses import Response

from agentbox.api.auth.authentication import OPERATOR, Authenticator, Caller
from agentbox.api.auth.browser_rules import BrowserRules
from agentbox.api.auth.login_attempts import LoginAttempts
from agentbox.api.auth.login_codes import LoginCodes, Subject, name_in
from agentbox.api.auth.logins import LoginStore
from agentbox.api.auth.open_calls import OpenCalls
from agentbox.api.auth.operator_journal import OperatorJournal
from agentbox.api.http.request import ApiRequest
from agentbox.api.pages.pages import SIGN_IN_PAGE
from agentbox.contracts.logins import (
    CREDENTIAL,
    PAGE_CODE_SECONDS,
    Identity,
    Login,
    Logins,
    NewLogin,
    SignedIn,
)
from agentbox.contracts.scopes import GRANTABLE
from agentbox.contracts.users import OPERATOR as OPERATOR_NAME
from agentbox.contracts.users import LoginCode
from agentbox.core.frozen import frozen
from agentbox.core.http.problems import Unauthenticated, invalid
from agentbox.core.http.responses import RecordResponse
from agentbox.core.slot_errors import CrossSite, NotFound, PermissionDenied, RateLimited


@frozen
class SignIn:
    """What a sign-in needs."""

    authenticator: Authenticator
    codes: LoginCodes
    attempts: LoginAttempts
    rules: BrowserRules


_CREDENTIAL = re.compile(CREDENTIAL)


class LoginHandlers:
    """Sign-ins that fail are counted by address and by the name in a code."""

    def __init__(
        self, sign_in: SignIn, logins: LoginStore, calls: OpenCalls, journal: OperatorJournal
    ) -> None:
        self._sign_in, self._logins, self._calls, self._journal = sign_in, logins, calls, journal

    async def sign_in(self, request: ApiRequest, body: NewLogin) -> Response:
        name = name_in(body.code or "")
        try:
            subject = self._check(request, body, name)
            cookie, key, login = await self._logins.create(subject)
        except CrossSite:
            self._journal.login_failed("cross-site", request.peer, name)
            raise
        except RateLimited:
            self._journal.login_failed("rate-limited", request.peer, name)
            raise
        except (Unauthenticated, NotFound):
            self._sign_in.attempts.failed(request.peer, name)
            self._journal.login_failed("refused", request.peer, name)
            raise Unauthenticated(
                "cannot sign in: the token or code is unknown, used or expired",
                rule="send a token or a code",
            ) from None
        caller = self._logins.renew(login.id)
        if caller is None:  # ended meanwhile
            raise Unauthenticated("cannot sign in: the user or token has ended", rule="sign in")
        await self._journal.signin(caller, "token" if body.code is None else "code", request.peer)
        answer = SignedIn(key=key, identity=_identity(caller, login))
        headers = {"set-cookie": self._sign_in.rules.set_cookie(cookie)}
        return RecordResponse(answer.to_wire(), 201, headers=headers)

    def _check(self, request: ApiRequest, body: NewLogin, name: str) -> Subject:
        """Whose session it becomes. Raises a typed error for each refusal."""
        if (body.token is None) == (body.code is None):
            raise invalid("", "must have either token or code")
        if not _CREDENTIAL.fullmatch(body.token or body.code or ""):
            raise invalid(
                "/token" if body.code is None else "/code",
                "must be 1 to 256 printable ASCII characters without spaces",
            )
        self._sign_in.rules.check(request.headers)
        self._sign_in.attempts.check(request.peer, name)
        if body.code is not None:
            subject = self._sign_in.codes.take(body.code)
            if subject is None:
                raise Unauthenticated("cannot sign in: unknown code", rule="send a code")
            return subject
        try:
            return _subject(self._sign_in.authenticator.authenticate(f"Bearer {body.token}"))
        except PermissionDenied as error:
            raise Unauthenticated(error.message, rule="send the token of a person") from None

    async def whoami(self, caller: Caller) -> Identity:
        return _identity(caller, self._logins.get(caller.login_id))

    async def sign_out(self, caller: Caller) -> Response:
        if not caller.login_id:
            raise PermissionDenied("cannot sign out: this is not a session", scope="session:self")
        await self._end(caller, caller.login_id)
        headers = {"set-cookie": self._sign_in.rules.set_cookie("")}
        return Response(status_code=204, headers=headers)

    async def make_own_code(self, caller: Caller) -> LoginCode:
        """An admin with a named token signs in as that token."""
        name = caller.user or OPERATOR_NAME
        code, expires_at = self._sign_in.codes.make(_subject(caller), name, PAGE_CODE_SECONDS)
        return LoginCode(code=code, expires_at=expires_at, page=SIGN_IN_PAGE)

    async def list_logins(self, caller: Caller) -> Logins:
        return Logins(items=tuple(await self._visible(caller)))

    async def end(self, caller: Caller, id: str) -> None:
        if id not in [login.id for login in await self._visible(caller)]:
            raise NotFound("cannot end this session: unknown id", resource="session", id=id[:64])
        await self._end(caller, id)

    async def _end(self, caller: Caller, id: str) -> None:
        await self._logins.end(id)
        self._calls.check()
        await self._journal.signout(caller, id)

    async def _visible(self, caller: Caller) -> list[Login]:
        everything = caller.has_scope("users:admin")
        logins = await self._logins.all()
        return [one for one in logins if everything or one.principal == caller.principal]


def _subject(caller: Caller) -> Subject:
    """Raises PermissionDenied for a caller that is a program of the box, or another box."""
    if not (caller.user or caller.token_id or caller.principal == OPERATOR):
        raise PermissionDenied("cannot make a session for a program", scope="session:self")
    return Subject(user=caller.user, token_id=caller.token_id)


def _identity(caller: Caller, login: Login | None) -> Identity:
    scopes = sorted(scope for scope in GRANTABLE if caller.has_scope(scope))
    return Identity(
        principal=caller.principal,
        user=caller.user,
        role=caller.role or None,
        scopes=tuple(scopes),
        session=login,
    )
