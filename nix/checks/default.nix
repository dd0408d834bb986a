# Checks of the image, one derivation each; `nix flake check` builds them all.
{ build, sources, image }:
let
  budget = 115 * 1000 * 1000; # bytes, compressed: the limit for the core profile
  spec = builtins.toJSON (image.described // { inherit budget; });
  check = name: build.run {
    name = "check-${name}";
    folders = [ sources.check ];
    module = "agentbox.host.image.check";
    attributes = { inherit spec; passAsFile = [ "spec" ]; };
    args = [ name "@spec" (placeholder "out") ];
  };
in
{
  manifest = image.plan; # rendering runs every rule first
  render = image.compose;
  layers = check "layers";
  ldcache = check "ldcache";
  sbom = check "sbom";
  budget = check "budget";
  format = build.run {
    name = "check-format";
    folders = [ sources.format ];
    module = "agentbox.host.image.source_format";
    args = [ sources.formatted (placeholder "out") ];
  };
}
