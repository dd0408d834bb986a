"""Phase 2: provides the API's token and the passwords of programs, and removes secrets from the
environment.
"""

from agentbox.box.boot.context import Context
from agentbox.box.supervision.passwords import provide_password
from agentbox.box.supervision.secrets import find_token, make_token, store_secret
from agentbox.core.paths import pop_from_environment
from agentbox.plan.names import LEGACY_TOKEN

PHASE, BUDGET_MS = "2", 5


def run(context: Context) -> None:
    """Moves secrets out of the environment, then finds or generates the token and each password.
    Raises AgentboxError for an unreadable one.
    """
    for name in (*context.plan.secrets, LEGACY_TOKEN):
        if value := pop_from_environment(name):
            store_secret(context.paths, name, value)
    token = find_token(context.paths, context.plan) or make_token(context.paths)
    context.emit("ApiTokenResolved", source=token.source)
    for password in context.plan.passwords:
        context.emit(
            "PasswordResolved", name=password.file, source=provide_password(context.paths, password)
        )
