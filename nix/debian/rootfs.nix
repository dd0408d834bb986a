# A layer's tree: `out`, the files, and `list`, what each of them is (the store keeps no mode and no owner).
{ build, sources, tools, python, arch }:
{ layer, spec }:
build.run {
  name = "tree-${layer}";
  folders = [ sources.tree tools ];
  module = "agentbox.host.image.tree";
  attributes = {
    outputs = [ "out" "list" ];
    passAsFile = [ "spec" ];
    spec = builtins.toJSON ({ inherit layer python arch; interpreter = build.interpreter; } // spec);
  };
  args = [ "@spec" (placeholder "out") (placeholder "list") ];
}
