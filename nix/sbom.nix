# The bill of materials of one image, laid out as in the image.
{ lock, build, sources, tools, arch, plan, debian, wheels, npm }:
let
  inside = builtins.filter (row: lock.layerOf "base" row != "");
in
build.run {
  name = "sbom";
  folders = [ sources.sbom tools ];
  module = "agentbox.host.image.sbom";
  attributes = {
    passAsFile = [ "spec" ];
    spec = builtins.toJSON {
      inherit arch;
      inherit (lock.lock) suite;
      deb = inside debian;
      wheel = inside wheels;
      npm = inside npm;
    };
  };
  args = [ "@spec" "${plan}/opt/agentbox/share/plan.json" (placeholder "out") ];
}
