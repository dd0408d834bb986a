# npm packages: each tarball goes to the folders that the feature's own dependency tree gives it.
{ lock }:
{
  ofLayer = layer: rows:
    map (row: { inherit (row) name version path paths; })
      (builtins.filter (row: lock.layerOf "base" row == layer) rows);
}
