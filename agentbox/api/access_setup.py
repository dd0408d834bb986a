"""Builds what decides who may use the API, and the endpoints of tokens, users and sessions."""

import hashlib
from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.api.auth.access_store import AccessStore
from agentbox.api.auth.authentication import ADMIN, Authenticator, Caller
from agentbox.api.auth.browser_rules import BrowserRules
from agentbox.api.auth.login_attempts import LoginAttempts
from agentbox.api.auth.login_codes import LoginCodes, Subject
from agentbox.api.auth.logins import LoginStore, LoginTimes
from agentbox.api.auth.open_calls import OpenCalls
from agentbox.api.auth.operator_journal import OperatorJournal
from agentbox.api.auth.request_access import RequestAccess
from agentbox.api.auth.tokens import TokenStore
from agentbox.api.auth.users import UserStore
from agentbox.api.endpoints.logins import LoginHandlers, SignIn
from agentbox.api.endpoints.tokens import TokenHandlers
from agentbox.api.endpoints.users import UserHandlers
from agentbox.api.hold import Hold
from agentbox.api.http.endpoint import Guards
from agentbox.api.http.handler import EndpointGroup
from agentbox.api.mesh.session_callers import SessionCallers
from agentbox.api.metrics.operator_metrics import OperatorMetrics
from agentbox.contracts.roles import SCOPES_OF, Role
from agentbox.contracts.users import user_principal
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan


@frozen
class Access:
    """`store` and `logins` are opened and closed with the program."""

    store: AccessStore
    tokens: TokenStore
    logins: LoginStore
    guards: Guards
    groups: Mapping[str, EndpointGroup]


def make_access(
    plan: Plan,
    paths: Paths,
    *,
    admin_token: str,
    enrolment: str,
    sessions: SessionCallers,
    journal: BestEffortJournal,
    registry: CollectorRegistry,
    hold: Hold,
) -> Access:
    """`enrolment` is the token with which boxes join; "" accepts none."""
    store = AccessStore(paths)
    users = UserStore(store)
    tokens = TokenStore(store, users)

    def caller_of(subject: Subject) -> Caller | None:
        if subject.token_id:
            return tokens.find_by_id(subject.token_id)
        if subject.user:
            role = users.role(subject.user)
            return None if role is None else user_caller(subject.user, role)
        return ADMIN

    admin_sha256 = hashlib.sha256(admin_token.encode()).digest()
    times = LoginTimes(idle=plan.api.session_idle_seconds, total=plan.api.session_seconds)
    logins = LoginStore(store, users, caller_of, times, admin_sha256)
    authenticator = Authenticator(
        paths,
        admin_token,
        tokens.find_caller,
        sessions=sessions.find,
        ended_sessions=sessions.find_ended,
        enrolment=enrolment,
    )

    def renew(caller: Caller) -> Caller | None:
        return (
            logins.renew(caller.login_id) if caller.login_id else tokens.find_by_id(caller.token_id)
        )

    codes, rules, calls = LoginCodes(), BrowserRules(plan.api.public_base), OpenCalls(renew)
    operators = OperatorJournal(journal, OperatorMetrics(registry))
    users.subscribe(lambda name, _ends: codes.remove_user(name))
    users.subscribe(lambda _name, _ends: calls.check())
    sign_in = SignIn(
        authenticator=authenticator, codes=codes, attempts=LoginAttempts(), rules=rules
    )
    access = RequestAccess(authenticator, plan, hold, logins, rules, operators)
    return Access(
        store=store,
        tokens=tokens,
        logins=logins,
        guards=Guards(access=access, calls=calls, operators=operators),
        groups={
            "tokens": EndpointGroup(TokenHandlers(tokens, calls, journal)),
            "users": EndpointGroup(UserHandlers(users, codes, journal)),
            "logins": EndpointGroup(LoginHandlers(sign_in, logins, calls, operators)),
        },
    )


def user_caller(name: str, role: Role) -> Caller:
    """A user with all scopes of the role."""
    return Caller(user_principal(name), SCOPES_OF[role], user=name, role=role)
