# Wheels: those that builds import (`tools`), and those that a layer installs.
{ lock, build }:
let
  hasFeature = name: row: builtins.elem name row.features;
  slim = row: { inherit (row) name version path; };
in
{
  # Feature `build`: unpacked, not installed, for the building machine.
  tools = rows: derivation {
    inherit (build) system;
    name = "buildtools";
    builder = "${build.seed}/bin/bash";
    args = [ ./wheels.sh ];
    busybox = "${build.seed}/bin/busybox";
    wheels = map (row: row.path) (builtins.filter (hasFeature "build") rows);
  };

  # What a layer's tree is told of its wheels.
  ofLayer = layer: rows: map slim (builtins.filter (row: lock.layerOf "python" row == layer) rows);
}
