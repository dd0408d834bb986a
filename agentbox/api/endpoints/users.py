"""Users over HTTP. Nobody gives or changes a role that has a scope which the caller lacks."""

from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.api.auth.authentication import Caller, require
from agentbox.api.auth.login_codes import LoginCodes, Subject
from agentbox.api.auth.users import Check, UserStore
from agentbox.api.pages.pages import SIGN_IN_PAGE
from agentbox.contracts.logins import CODE_SECONDS
from agentbox.contracts.roles import SCOPES_OF, Role
from agentbox.contracts.users import LoginCode, NewUser, RoleBody, User, Users
from agentbox.core.slot_errors import NotFound


class UserHandlers:
    """Each change is journalled."""

    def __init__(self, users: UserStore, codes: LoginCodes, journal: BestEffortJournal) -> None:
        self._users, self._codes, self._journal = users, codes, journal

    async def list_users(self) -> Users:
        return Users(items=await self._users.all())

    async def add(self, caller: Caller, user: NewUser) -> User:
        _check_covers(caller, user.role)
        added = await self._users.add(user, caller.principal)
        await self._record("added", added, caller)
        return added

    async def set_role(self, caller: Caller, name: str, body: RoleBody) -> User:
        _check_covers(caller, body.role)
        changed = await self._users.set_role(name, body.role, _may_change(caller))
        await self._record("role", changed, caller)
        return changed

    async def disable(self, caller: Caller, name: str) -> User:
        """Tokens, sessions, codes and open streams end before the answer."""
        changed = await self._users.disable(name, _may_change(caller))
        await self._record("disabled", changed, caller)
        return changed

    async def enable(self, caller: Caller, name: str) -> User:
        changed = await self._users.enable(name, _may_change(caller))
        await self._record("enabled", changed, caller)
        return changed

    async def make_code(self, caller: Caller, name: str) -> LoginCode:
        _may_change(caller)(await self._users.get(name))
        if self._users.role(name) is None:
            raise NotFound("cannot sign in this user: disabled", resource="user", id=name)
        code, expires_at = self._codes.make(Subject(user=name), name, CODE_SECONDS)
        await self._record("code made", await self._users.get(name), caller)
        return LoginCode(code=code, expires_at=expires_at, page=SIGN_IN_PAGE)

    async def _record(self, change: str, user: User, caller: Caller) -> None:
        data = {"name": user.name, "role": user.role, "change": change, "by": caller.principal}
        await self._journal.record("operator.user", data)


def _may_change(caller: Caller) -> Check:
    return lambda user: _check_covers(caller, user.role)


def _check_covers(caller: Caller, role: Role) -> None:
    """Raises PermissionDenied naming the first scope of the role that the caller lacks."""
    require(caller, sorted(SCOPES_OF.get(role, ())))
