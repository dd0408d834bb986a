"""manifest + features + lock + system -> Plan: a pure function of its arguments."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, get_type_hints

from agentbox import __version__
from agentbox.core.canonical import digest
from agentbox.core.data_files import config_dir
from agentbox.core.records.plain import build
from agentbox.manifest.features.loader import enabled_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.keys import apply_class, significant_values
from agentbox.manifest.load import Manifest
from agentbox.manifest.skills.corpus import select_skills, usable_skills
from agentbox.manifest.tables.network import NetworkTable
from agentbox.plan import backup, session_host, slots, storage
from agentbox.plan.drift import apply_table
from agentbox.plan.egress import destinations
from agentbox.plan.errors import PlanError
from agentbox.plan.features.additions import FeatureAdditions, build_contribution
from agentbox.plan.features.security_exceptions import build_exceptions
from agentbox.plan.lockfile.check import check_lock
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.merge import DEFAULT_SECCOMP, effective_profile
from agentbox.plan.model import (
    ApiPlan,
    Digests,
    ObservabilityPlan,
    Plan,
    Program,
    ResourcesPlan,
    SlotPlan,
)
from agentbox.plan.network import check_ports, control_plane_ports
from agentbox.plan.programs import check_names, check_stop_budget, control_plane_programs
from agentbox.plan.secrets import passed_names, secret_names
from agentbox.plan.storage import with_log_sizes
from agentbox.plan.tables import NetworkPlan
from agentbox.plan.values import flatten_keys, sizes_to_bytes

_MANIFEST_TABLES: Final = (
    "mesh",
    "privacy",
    "limits",
    "agents",
    "mcp",
    "state",
    "sandboxes",
    "acp",
    "policies",
    "providers",
    "cost",
    "reach",
    "backup",
)
_TABLE_NAMES: Final = {"reach": "egress"}  # a plan's `egress` are the destinations of the box


def build_plan(
    manifest: Manifest,
    features: Mapping[str, Feature],
    lock_bytes: bytes,
    lock: Lock,
    system: str,
    *,
    test_hooks: bool = False,
    seccomp: bytes | None = None,
) -> Plan:
    """The plan of a manifest without schema findings. `seccomp` is the profile in force, by default
    the shipped file selected by the baseline or an exception. Raises LockMismatchError if the lock
    is for other packages, PlanError for conflicting programs, ports or exceptions, ValueError (a
    bug of the caller) for a manifest with findings.
    """
    if (model := manifest.effective) is None:
        raise ValueError(f"{manifest.name} has findings")
    tables = sizes_to_bytes(model)
    values = flatten_keys(tables)
    enabled_names = enabled_features(manifest, features)
    check_lock(lock, tables["image"], enabled_names, system)
    exceptions = build_exceptions(model, features, enabled_names)
    contributed = build_contribution(
        [features[name] for name in enabled_names], values, system, lock.python, exceptions
    )
    slot_plans = slots.resolve_slots(tables["adapters"])
    own = [(backup.PROGRAM, backup.ruleset(model.backup))]
    if session_host.is_needed(tables["agents"], slot_plans):
        own.append((session_host.PROGRAM, session_host.RULESET))
    api, observability = _api(tables["api"]), ObservabilityPlan(**tables["observability"])
    resources = ResourcesPlan(**tables["resources"])
    seccomp = seccomp or _seccomp(
        next((row.seccomp for row in exceptions if row.seccomp), DEFAULT_SECCOMP)
    )
    corpus = model.skills.corpus
    usable = usable_skills(lock.skills, features, enabled_names)
    skills = select_skills(corpus.include, corpus.exclude, usable)
    plan = Plan(
        version=__version__,
        name=tables["meta"]["name"],
        system=system,
        dev=tables["meta"]["dev"],
        source=lock.source,
        suite=lock.suite,
        python=lock.python,
        features=tuple(enabled_names),
        skills=skills,
        digests=Digests(
            manifest=manifest.digest,
            lock=digest(lock_bytes),
            seccomp=digest(seccomp),
            skills={name: lock.skills[name] for name in skills},
            mcp=lock.mcp,
        ),
        resources=resources,
        api=api,
        observability=observability,
        **_manifest_tables(tables),
        network=_network(model.network),
        slots=slot_plans,
        programs=_programs(
            slot_plans, (*contributed.programs, *(program for program, _ in own)), resources
        ),
        rulesets={**contributed.rulesets, **{program.name: ruleset for program, ruleset in own}},
        ports=(*control_plane_ports(api, observability, slot_plans), *contributed.ports),
        probes=contributed.probes,
        tmpfs=storage.baseline_tmpfs(model.resources),
        volumes=(
            *storage.baseline_volumes(model.backup.folder),
            *storage.authority_volumes(model.network.ca_bundle),
            *contributed.volumes,
        ),
        writable_roots=(),
        secrets=secret_names(values, _classes(values)),
        passwords=contributed.passwords,
        environment=_environment(observability, contributed),
        passed=passed_names(values),
        egress=destinations(values, slot_plans),
        exceptions=exceptions,
        apply=apply_digests(manifest),
        test_hooks=test_hooks,
    )
    return _with_writable_roots(plan)


def apply_digests(manifest: Manifest) -> dict[str, str]:
    """`Plan.apply` of a manifest without findings, without building the plan."""
    values = flatten_keys(sizes_to_bytes(manifest.usable))
    significant = {key: values[key] for key in significant_values(manifest)}
    return apply_table(significant, _classes(significant))


def _manifest_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the plan that are tables of the manifest, typed."""
    hints = get_type_hints(Plan)
    return {
        name: build(hints[name], tables[_TABLE_NAMES.get(name, name)], name)
        for name in _MANIFEST_TABLES
    }


def _classes(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: apply_class(key) for key in values}


def _network(table: NetworkTable) -> NetworkPlan | None:
    """None if the box reaches others directly, with the authorities of its image."""
    if table == NetworkTable():
        return None
    return NetworkPlan(**{item.name: getattr(table, item.name) for item in fields(table)})


def _api(table: Mapping[str, Any]) -> ApiPlan:
    base = table["public_base"] or f"http://127.0.0.1:{table['port']}"
    return ApiPlan(**{**table, "public_base": base})


def _programs(
    slot_plans: Mapping[str, SlotPlan], confined: tuple[Program, ...], resources: ResourcesPlan
) -> tuple[Program, ...]:
    programs = sorted(
        (*control_plane_programs(slot_plans), *confined),
        key=lambda program: (program.priority, program.name),
    )
    check_names(tuple(programs))
    check_stop_budget(tuple(programs), resources.stop_seconds)
    return with_log_sizes(programs, resources.log_size)


def _environment(observability: ObservabilityPlan, contributed: FeatureAdditions) -> dict[str, str]:
    environment = {
        **contributed.env,
        "AGENTBOX_LOG_LEVEL": observability.log_level,
        "AGENTBOX_METRICS_PORT": str(observability.metrics_port),
        "AGENTBOX_OTLP_ENDPOINT": observability.otlp_endpoint,
    }
    return dict(sorted(environment.items()))


def _with_writable_roots(plan: Plan) -> Plan:
    """Adds the writable roots of its profile. Raises PlanError."""
    check_ports(plan.ports)
    profile = effective_profile(plan)
    return replace(plan, writable_roots=storage.writable_roots(profile.tmpfs, profile.volumes))


def _seccomp(stem: str) -> bytes:
    path = config_dir() / "seccomp" / f"{stem}.json"
    try:
        return path.read_bytes()
    except OSError as error:
        raise PlanError(
            f"cannot read {path}: {error.strerror}", "reinstall agentbox: it ships this file"
        ) from error
