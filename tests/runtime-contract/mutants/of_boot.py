"""Mutants of the boot's and the API's own checks: a module with one line that skips a check."""

from functools import partial

from harness.overlay import module
from test_rc_003_boot_installs_nothing import installs_nothing, recorders
from test_rc_004_root_is_immutable import WRITABLE, root_drift_is_told, root_is_immutable
from test_rc_005_missing_required_artifact_is_fatal import PROBE, emptied, ends_naming
from test_rc_008_three_probes_are_distinct import probes_are_distinct
from test_rc_009_readiness_falls_and_rises import (
    falls_for_a_broken_canary,
    falls_for_a_full_volume,
    falls_for_a_killed_program,
    falls_for_a_stopped_backend,
)
from test_rc_011_seal_fails_closed import (
    dead_program_seals_nothing,
    empty_set_seals_nothing,
    killed_while_writing_leaves_none,
    requires_nothing,
    timeout_seals_nothing,
)
from test_rc_013_agent_cannot_touch_the_control_plane import agent_is_refused
from test_rc_016_drift_is_told import HOOKS, told_while_it_lasts
from test_rc_028_the_box_survives_its_agents import survives

from mutants.mutant import Mutant, instead, ready, served, start

SECONDS = 2  # a check that is skipped stays so for longer, too
SLOW_SLOT = {"AGENTBOX_TEST_DELAY_SLOT": f"orchestrator:{SECONDS}"}
LONGER = 6  # than a complete boot takes on a busy machine
SLOWER_SLOT = {"AGENTBOX_TEST_DELAY_SLOT": f"orchestrator:{LONGER}"}

CALLS_GIT = module(
    "agentbox.box.boot.steps.p4_workspace",
    "    context.paths.screenshots.mkdir(exist_ok=True)\n",
    "    context.paths.screenshots.mkdir(exist_ok=True)\n    __import__('subprocess').run(['/usr/bin/git', 'init'])\n",
)
ROOT_IS_FINE = module(
    "agentbox.box.posture.drift", "if actual[control] != expected[control]", "if False"
)
MISSING_IS_FINE = module(
    "agentbox.box.boot.steps.p5_artifacts", "    if required:\n", "    if not results:\n"
)
EVERY_PATH_IS_FINE = module(
    "agentbox.box.probes.path_probe",
    "path = resolve_path(paths, probe.path)\n",
    "path = resolve_path(paths, '/usr/bin/bash')\n",
)
ALWAYS_READY = module("agentbox.api.endpoints.probes", "    if verdict.ready:\n", "    if True:\n")
NOTIFIES_EARLY = module(
    "agentbox.api.server", "(lambda: _notify(api))", "(_notify(api) or (lambda: None))"
)
CHECKS_PASS = module(
    "agentbox.box.readiness.evaluator",
    "await _check_in_time(requirement)\n",
    "await _check_in_time(requirement) and ()\n",
)
EMPTY_SET_IS_FINE = module(
    "agentbox.box.seal.main",
    "    if not plan.required_programs:\n",
    "    if not plan.required_programs:\n        return plan.programs[1:2]\n    if not plan.required_programs:\n",
)
SLEEPS_INSTEAD = module(
    "agentbox.box.seal.main",
    "ready_programs = watcher.until_ready()",
    "ready_programs = [time.sleep(2.5)][:0]",
)
WRITES_IN_PLACE = module(
    "agentbox.box.supervision.sentinel",
    'temporary = paths.sentinel.with_name(f"{paths.sentinel.name}.{os.getpid()}")',
    "temporary = paths.sentinel",
)

UNCONFINED = module(
    "agentbox.agents.runs.launch_spec",
    "confinement=build_confinement(",
    "confinement=None and build_confinement(",
)

WAITS_FOR_A_FLOOD = module(
    "agentbox.agents.runs.pump",
    "            self._loop.remove_reader(self._fd)\n            self._pause_timer = self._loop.call_later(delay, self._unpause)\n",
    "            __import__('time').sleep(max(delay, 0.15))\n",
)
LOOKS_ONCE = module(
    "agentbox.api.background.drift",
    "        while True:\n            await self.check()\n",
    "        await self.check()\n        while True:\n",
)

MUTANTS = (
    Mutant("RC-003", "boot-calls-git", installs_nothing, "called before the seal: /usr/bin/git init",
           {**recorders(), "files": {**recorders()["files"], **CALLS_GIT}}),  # type: ignore[dict-item]
    Mutant("RC-004", "root-not-read-only", root_is_immutable, "EACCES",
           {"edit": instead("read_only: true\n    security_opt", "read_only: false\n    security_opt")}, start),
    Mutant("RC-004", "posture-always-fine", root_drift_is_told, "event PostureDrift among",
           {"service": WRITABLE, "files": ROOT_IS_FINE}),
    Mutant("RC-005", "missing-is-fine", partial(ends_naming, probe=PROBE), "sealed instead of ending",
           {"files": {**emptied()["files"], **MISSING_IS_FINE}}),  # type: ignore[dict-item]
    Mutant("RC-005", "every-path-is-fine", partial(ends_naming, probe=PROBE), "sealed instead of ending",
           {"files": {**emptied()["files"], **EVERY_PATH_IS_FINE}}),  # type: ignore[dict-item]
    Mutant("RC-008", "always-ready", partial(probes_are_distinct, seconds=SECONDS), "200 == 503",
           {"hooks": SLOW_SLOT, "files": ALWAYS_READY}),
    Mutant("RC-008", "api-notifies-before-its-slots", partial(probes_are_distinct, seconds=LONGER),
           "sealed too early|bootstrap.done sentinel", {"hooks": SLOWER_SLOT, "files": NOTIFIES_EARLY}),
    Mutant("RC-009", "program", partial(falls_for_a_killed_program, seconds=SECONDS), "agent-host in missing",
           {"files": CHECKS_PASS}, ready),
    Mutant("RC-009", "volume", partial(falls_for_a_full_volume, seconds=SECONDS), "'path not accessible: /workspace' in missing",
           {"files": CHECKS_PASS, "small_workspace": True}, ready),
    Mutant("RC-009", "backend", partial(falls_for_a_stopped_backend, seconds=SECONDS), "'adapter:orchestrator not healthy .* in missing",
           {"files": CHECKS_PASS}, ready),
    Mutant("RC-009", "canary", partial(falls_for_a_broken_canary, seconds=SECONDS), "'sandbox:read not enforced' in missing",
           {"files": CHECKS_PASS, "test_hooks": True}, ready),
    Mutant("RC-013", "agents-are-not-confined", agent_is_refused, "an agent could", {"files": UNCONFINED}, served),
    Mutant("RC-011", "empty-set-is-fine", empty_set_seals_nothing, "0 == 1",
           {"alter": requires_nothing, "files": EMPTY_SET_IS_FINE}),
    Mutant("RC-011", "dead-program-is-fine", dead_program_seals_nothing, "0 == 1",
           {"hooks": {"AGENTBOX_TEST_DELAY_PROGRAM": "agent-host:30"}, "files": SLEEPS_INSTEAD}),
    Mutant("RC-011", "late-is-fine", timeout_seals_nothing, "sealed without BootstrapSealTimeout",
           {"hooks": {"AGENTBOX_TEST_DELAY_PROGRAM": "agent-host:3", "AGENTBOX_TEST_SEAL_TIMEOUT": "1"}, "files": SLEEPS_INSTEAD}),
    Mutant("RC-011", "written-in-place", killed_while_writing_leaves_none, "a killed seal left a sentinel",
           {"files": WRITES_IN_PLACE}, ready),
    Mutant("RC-016", "drift-looks-once", partial(told_while_it_lasts, seconds=SECONDS + 4), "limit.pids named",
           {"hooks": HOOKS, "files": LOOKS_ONCE}, ready),
    Mutant("RC-028", "agent-host-waits-for-a-flood", partial(survives, flood="output", runs=1, kept_as="mutant"),
           "another agent is kept waiting", {"files": WAITS_FOR_A_FLOOD}, ready),
)  # fmt: skip
