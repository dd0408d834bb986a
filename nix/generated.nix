# What the plan says, rendered by the product's own renderer: the files of layer `config`.
{ build, sources, libraries, target, testHooks }:
build.run {
  name = "plan";
  folders = [ sources.plan libraries ];
  module = "agentbox.plan.render.build";
  args = [
    "--manifest"
    "${sources.manifest}/agentbox.toml"
    "--lock"
    "${sources.manifest}/agentbox.lock"
    "--skills"
    "${sources.manifest}/manifest-skills"
    "--system"
    target
    "--out"
    (placeholder "out")
  ] ++ (if testHooks then [ "--test-hooks" ] else [ ]);
}
