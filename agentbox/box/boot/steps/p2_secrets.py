"""Phase 2: removes secrets from the environment, writes how the box reaches others, and provides
the API's token and the passwords of programs.
"""

from agentbox.box.boot.context import Context
from agentbox.box.supervision.outgoing_files import write_outgoing
from agentbox.box.supervision.passwords import provide_password
from agentbox.box.supervision.secrets import find_token, make_token, store_secret
from agentbox.core.paths import pop_from_environment
from agentbox.plan.names import LEGACY_TOKEN

PHASE, BUDGET_MS = "2", 5


def run(context: Context) -> None:
    """Moves secrets out of the environment, then finds or generates the token and each password.
    Raises AgentboxError for an unreadable one, and for authorities or a proxy that cannot be used.
    """
    for name in (*context.plan.secrets, LEGACY_TOKEN):
        if value := pop_from_environment(name):
            store_secret(context.paths, name, value)
    if context.plan.network is not None:
        write_outgoing(context.paths, context.plan.network)
    token = find_token(context.paths, context.plan) or make_token(context.paths)
    context.emit("ApiTokenResolved", source=token.source)
    for password in context.plan.passwords:
        context.emit(
            "PasswordResolved", name=password.file, source=provide_password(context.paths, password)
        )
