"""Attacks that no agent of a running box can try, and the tests that try them."""

from typing import Final

SHOWN_BY_TESTS: Final = (
    (
        "a desktop client of `agentbox mcp` approves or commits the work that it gave away",
        "API: its token has no such scope, and a person confirms the digest",
        "test_its_token_is_weak_and_ends_with_it",
        "test_a_review_is_committed_by_a_person",
    ),
    (
        "a desktop client finds the operator's token in the server that it starts",
        "another process creates the server's own",
        "test_it_never_has_the_admin_token",
    ),
    (
        (
            "a branch has a hostile `.git`: attributes, filters, hooks, fsmonitor, alternates, replaced "
            "objects, `.gitmodules`, packs that unpack to too much"
        ),
        "branch: a sandbox without network reads a repository of its own configuration",
        "test_attributes_hide_no_difference",
        "test_replaced_objects",
        "test_alternates_that_lead_elsewhere",
        "test_gitmodules",
        "test_a_blob_that_unpacks_to_more_than_the_bound",
    ),
    (
        "commits reach a ref, hook or filter of the operator's repository",
        "host: a quarantine repository, and one new ref",
        "test_signed_off",
        "test_names_that_are_refused",
        "test_objects_that_fsck_refuses",
    ),
    (
        (
            "an agent and its child spend more than their money by parallel streams, or by one that "
            "they leave after an early usage"
        ),
        "model gateway",
        "test_parallel_streams_cannot_spend_beyond_their_money",
        "test_an_early_usage_settles_no_stream_that_the_agent_leaves",
    ),
    (
        "another caller gets the result of a program by its idempotency key",
        "agent host",
        "test_a_request_id_is_the_caller_s_own",
    ),
    (
        "programs of a sandbox fill the memory or the disk of agent host with their output",
        "agent host",
        "test_a_flood_of_output_is_not_held_in_memory",
        "test_all_files_of_an_ended_agent_count",
    ),
    (
        "an MCP server changes a definition after it was pinned (rug pull)",
        "mcp-host: the text of a definition has the pinned digest, or the tool is withheld",
        "test_a_changed_definition_is_withheld",
    ),
    (
        "an MCP server names its tool as one of the box or of another server (shadowing)",
        "gateway: the prefix of each name is the server's own",
        "test_what_cannot_be_offered_is_not",
    ),
    (
        "an MCP server has a result that is too large, writes without end, never answers, or ends",
        "mcp-host: bounds of a message, a result and a call",
        "test_a_hostile_server_costs_one_call",
        "test_a_result_has_its_most",
        "test_a_call_has_its_time",
    ),
    (
        "an MCP server asks for a person's input, a model's answer, or the roots of its client",
        "mcp-host",
        "test_a_server_may_not_ask",
    ),
    (
        (
            "an MCP server that may ask for input asks without end, outside of a call, with a form that "
            "is too large or nested, for an address to be opened, or with text that cannot be seen"
        ),
        "mcp-host: bounds of a call, and a form made anew",
        "test_a_server_that_asks_without_end",
        "test_outside_of_a_call_nobody_is_asked",
        "test_what_is_no_form_is_not_asked",
        "test_what_is_shown_shows_its_invisible_characters",
    ),
    (
        (
            "an agent answers what another agent was asked, answers twice, another call or too late, "
            "or lets calls wait without end"
        ),
        "mcp-host: the state of a question; gateway: the id of a question on a stream",
        "test_an_answer_is_of_the_agent_that_was_asked",
        "test_an_answer_on_a_stream_is_of_the_same_agent",
        "test_a_call_too_many_ends_the_oldest_that_waits",
    ),
    (
        (
            "an MCP server reads or writes the branch of another agent, the workspace or the control "
            "plane, by paths, by links that its agent left, and by a folder that becomes a link"
        ),
        "landlock",
        "test_it_reaches_no_branch_of_another",
        "test_a_folder_that_becomes_a_link_leads_nowhere",
        "test_each_agent_has_the_server_of_its_own_branch",
        "test_a_reader_cannot_write",
    ),
    (
        "an MCP server goes on writing into the branch of an agent while it is compared",
        "agent host: it ends first",
        "test_it_ends_before_the_branch_is_compared",
    ),
    (
        "an MCP server takes over mcp-host, which names the branch of an agent without that server",
        "agent host",
        "test_mcp_host_cannot_name_the_branch_of_others",
        "test_mcp_host_cannot_write_where_a_server_only_reads",
    ),
    (
        (
            "an agent learns the address, a header or the secret of an MCP server from an error, a "
            "listing or a command line, and a redirect of the server takes them elsewhere"
        ),
        "mcp-host; its bridge in a sandbox of the server",
        "test_no_secret_of_it_is_told",
        "test_no_command_line_has_the_address",
        "test_a_secret_that_is_no_header_is_not_told",
        "test_a_redirect_is_not_followed",
    ),
    (
        "an agent calls a withheld tool, or a server that it is not offered, by name",
        "gateway: the right `mcp/<server>/<tool>`; mcp-host: the pin",
        "test_nothing_is_offered_before_it_is_pinned",
        "test_other_agents_have_no_server",
        "test_a_denial_of_a_policy_narrows_it",
    ),
)
"""Attack, what stops it, and names of tests."""
