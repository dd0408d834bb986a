"""Three agents of a manifest, each a child of the previous one, with similar but different
rights.
"""

NAMES = ("lead", "hand", "eye")
MANIFEST = """
[egress]
allow = ["example.com", "*.pkg.example:*"]
[agents.lead]
command = ["true"]
profile = "wide"
children = ["hand", "eye"]
max_instances = 1000
[agents.hand]
command = ["true"]
profile = "wide"
children = ["eye"]
max_instances = 1000
[agents.eye]
command = ["true"]
profile = "narrow"
max_instances = 1000
[policies.wide]
base = "standard"
[[policies.wide.net]]
mode = "allow"
patterns = ["*.pkg.example:80"]
[[policies.wide.net]]
mode = "deny"
patterns = ["bad.pkg.example:*"]
[[policies.wide.tool]]
mode = "deny"
patterns = ["git/*"]
[[policies.wide.tool]]
mode = "allow"
patterns = ["git/log"]
[[policies.wide.fs]]
mode = "allow"
operations = ["read"]
patterns = ["/srv/data/**"]
[policies.narrow]
base = "readonly"
[[policies.narrow.tool]]
mode = "allow"
patterns = ["git/log", "memory/*"]
[[policies.narrow.net]]
mode = "allow"
patterns = ["example.com"]
"""
