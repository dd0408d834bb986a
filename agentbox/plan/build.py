"""manifest + features + lock + system -> Plan: a pure function of its arguments."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentbox import __version__
from agentbox.core.canonical import digest
from agentbox.core.data_files import config_dir
from agentbox.manifest.features.corpus import selected, skill_names
from agentbox.manifest.features.loader import enabled
from agentbox.manifest.features.model import Feature
from agentbox.manifest.keys import apply_class, telling_values
from agentbox.manifest.load import Manifest
from agentbox.plan import slots, storage
from agentbox.plan.drift import apply_table
from agentbox.plan.egress import destinations
from agentbox.plan.errors import PlanError
from agentbox.plan.exceptions import deltas
from agentbox.plan.from_features import Contribution, contribution
from agentbox.plan.lock_check import check_lock
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.logs import with_log_sizes
from agentbox.plan.merge import DEFAULT_SECCOMP, effective
from agentbox.plan.model import Api, Digests, Observability, Plan, Program, Resources, Slot
from agentbox.plan.network import check_ports, own_ports
from agentbox.plan.programs import check_names, check_stop_budget, own_programs
from agentbox.plan.secrets import passed_names, secret_names
from agentbox.plan.values import by_key, in_bytes


def make_plan(
    manifest: Manifest,
    features: Mapping[str, Feature],
    lock_bytes: bytes,
    lock: Lock,
    system: str,
    *,
    test_hooks: bool = False,
    seccomp: bytes | None = None,
) -> Plan:
    """The plan of a manifest without schema findings. `seccomp` is the list in force, by default the
    shipped file that the baseline or an exception names.

    Raises LockDisagreesError when the lock was made for other packages, PlanError when programs, ports or exceptions
    cannot be held together, ValueError (a bug of the caller) for a manifest with findings.
    """
    if (model := manifest.effective) is None:
        raise ValueError(f"{manifest.name} has findings")
    tables = in_bytes(model)
    values = by_key(tables)
    chosen = enabled(manifest, features)
    check_lock(lock, tables["image"], chosen, system)
    exceptions = deltas(model, features, chosen)
    added = contribution([features[name] for name in chosen], values, system, lock.python, exceptions)
    resolved = slots.resolve(tables["adapters"])
    api, observability = _api(tables["api"]), Observability(**tables["observability"])
    resources = Resources(**tables["resources"])
    seccomp = seccomp or _seccomp(next((row.seccomp for row in exceptions if row.seccomp), DEFAULT_SECCOMP))
    plan = Plan(
        version=__version__,
        name=tables["meta"]["name"],
        system=system,
        dev=tables["meta"]["dev"],
        source=lock.source,
        suite=lock.suite,
        python=lock.python,
        features=tuple(chosen),
        skills=selected(model.skills.corpus.include, model.skills.corpus.exclude, skill_names()),
        digests=Digests(manifest=manifest.digest, lock=digest(lock_bytes), seccomp=digest(seccomp)),
        resources=resources,
        api=api,
        observability=observability,
        mesh=tables["mesh"],
        privacy=tables["privacy"],
        limits=tables["limits"],
        agents=tables["agents"],
        state=tables["state"],
        policies=tables["policies"],
        providers=tables["providers"],
        reach=tables["egress"],
        slots=resolved,
        programs=_programs(resolved, added, resources),
        rulesets=added.rulesets,
        ports=(*own_ports(api, observability, resolved), *added.ports),
        probes=added.probes,
        tmpfs=storage.baseline_tmpfs(model.resources),
        volumes=(*storage.baseline_volumes(), *added.volumes),
        writable_roots=(),
        secrets=secret_names(values, _classes(values)),
        passwords=added.passwords,
        environment=_environment(observability, added),
        passed=passed_names(values),
        egress=destinations(values, resolved),
        exceptions=exceptions,
        apply=apply_of(manifest),
        test_hooks=test_hooks,
    )
    return _checked(plan)


def apply_of(manifest: Manifest) -> dict[str, str]:
    """`Plan.apply` of a manifest without findings, without making its plan."""
    values = by_key(in_bytes(manifest.usable))
    told = {key: values[key] for key in telling_values(manifest)}
    return apply_table(told, _classes(told))


def _classes(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: apply_class(key) for key in values}


def _api(table: Mapping[str, Any]) -> Api:
    base = table["public_base"] or f"http://127.0.0.1:{table['port']}"
    return Api(**{**table, "public_base": base})


def _programs(resolved: Mapping[str, Slot], added: Contribution, resources: Resources) -> tuple[Program, ...]:
    found = sorted((*own_programs(resolved), *added.programs), key=lambda program: (program.priority, program.name))
    check_names(tuple(found))
    check_stop_budget(tuple(found), resources.stop_seconds)
    return with_log_sizes(found, resources.log_size)


def _environment(observability: Observability, added: Contribution) -> dict[str, str]:
    found = {
        **added.env,
        "AGENTBOX_LOG_LEVEL": observability.log_level,
        "AGENTBOX_METRICS_PORT": str(observability.metrics_port),
        "AGENTBOX_OTLP_ENDPOINT": observability.otlp_endpoint,
    }
    return dict(sorted(found.items()))


def _checked(plan: Plan) -> Plan:
    """The same with the roots that its whole profile makes writable. Raises PlanError."""
    check_ports(plan.ports)
    profile = effective(plan)
    return replace(plan, writable_roots=storage.writable_roots(profile.tmpfs, profile.volumes))


def _seccomp(stem: str) -> bytes:
    path = config_dir() / "seccomp" / f"{stem}.json"
    try:
        return path.read_bytes()
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}", "reinstall agentbox: it ships this file") from error
