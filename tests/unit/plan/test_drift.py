"""drift: which keys of two plans differ, and what that needs."""

from support.plans import plan_of

from agentbox.manifest.keys import apply_classes
from agentbox.plan.drift import Drift, find_drift


def test_one_change_a_class_is_found_under_its_class() -> None:
    """Each key is named under the class in docs/manifest.md, and the highest class decides."""
    old = plan_of()
    new = plan_of(
        '[limits]\npids = 7\n[api]\nmax_body = "2MiB"\nport = 9999\n[resources]\ncpus = 1\n'
    )
    assert find_drift(old.apply, new.apply) == Drift(
        live=("limits.pids",),
        boot=("api.max_body",),
        recreate=("resources.cpus",),
        rebuild=("api.port",),
    )
    assert find_drift(old.apply, new.apply).worst == "rebuild"


def test_a_default_written_out_and_another_spelling_are_no_change() -> None:
    """Values are compared, not texts: 1024MiB is 1GiB. The plan digest differs, for it names the bytes."""
    old, new = (
        plan_of('[resources]\nmemory = "1GiB"\n'),
        plan_of('[resources]\nmemory = "1024MiB"\npids = 2048\n'),
    )
    assert find_drift(old.apply, new.apply) == Drift()
    assert find_drift(old.apply, new.apply).worst == ""
    assert old.digest != new.digest


def test_an_entry_of_a_map_counts_when_it_appears() -> None:
    """A written exception changes the container, also while its gate is off."""
    new = plan_of("[security.exceptions.playwright]\n")
    found = find_drift(plan_of().apply, new.apply)
    assert found.worst == "recreate"
    assert "security.exceptions.playwright.builtin" in found.recreate


def test_every_key_of_the_manifest_is_covered() -> None:
    """A key that drift does not see could be changed behind the image's back."""
    plain = {key for key in apply_classes() if "*" not in key}
    network = """[network]
    proxy = "http://proxy.example:3128"
    proxy_env = "PROXY_ACCOUNT"
    no_proxy = ["corp.example"]
    ca_bundle = "/etc/corp.pem"
    resolve = "proxy"
    """
    assert plain == set(plan_of(network).apply)
    assert plain - set(plan_of().apply) == {key for key in plain if key.startswith("network.")}


def test_a_network_that_is_written_at_its_defaults_changes_nothing() -> None:
    """Not even the plan's bytes, but for the digest of the manifest; a proxy recreates the box."""
    old, new = plan_of(), plan_of('[network]\nproxy = ""\nresolve = "local"\n')
    assert old.apply == new.apply
    assert {**old.to_json(), "digests": 0} == {**new.to_json(), "digests": 0}
    changed = plan_of('[network]\nproxy = "http://proxy.example:3128"\n')
    assert find_drift(old.apply, changed.apply).recreate == ("network.proxy",)
