"""What becomes a compose secret, and what is passed through as plain data."""

from support.plans import plan_of

from agentbox.plan.secrets import passed_names, secret_names


def test_the_default_box_has_the_api_token_and_the_mesh_token() -> None:
    """`mesh.mode` is of class boot, so its token exists before the mode applies."""
    assert plan_of().secrets == ("AGENTBOX_API_TOKEN", "AGENTBOX_MESH_TOKEN")


def test_a_table_that_is_not_built_in_needs_no_secret() -> None:
    """A gate of class rebuild decides; one of class boot does not."""
    values = {
        "desktop.enabled": False,
        "desktop.password_env": "DESKTOP",
        "providers.a.enabled": False,
        "providers.a.env_var": "A_KEY",
        "agents.x.secrets": ["SIGNING"],
        "agents.x.env": ["PLAIN"],
        "api.token_env": "",
    }
    classes = dict.fromkeys(values, "boot") | {"desktop.enabled": "rebuild"}
    assert secret_names(values, classes) == ("A_KEY", "SIGNING")
    assert "DESKTOP" in secret_names({**values, "desktop.enabled": True}, classes)


def test_what_an_agent_is_passed_is_plain_data() -> None:
    """Whether the agent is enabled or not, each name once, in order; never a secret's name."""
    values = {
        "agents.x.env": ["TZ", "LANG"],
        "agents.y.env": ["LANG"],
        "agents.y.enabled": False,
        "agents.y.secrets": ["S"],
    }
    assert passed_names(values) == ("LANG", "TZ")
    assert plan_of('[agents.x]\ncommand = ["x"]\nenv = ["TZ"]\nenabled = false\n').passed == ("TZ",)
