# The feature files, as far as the image needs them here: which links, wrappers and folders a layer gets, and what is
# made for a feature. The packages come from the lock.
{ root, names, arch, python }:
let
  folder = root + "/config/features";
  files = builtins.readDir folder;
  read = name:
    if files ? "${name}.toml" then builtins.fromTOML (builtins.readFile (folder + "/${name}.toml"))
    else throw "agentbox.lock names the feature ${name}, and config/features/${name}.toml does not exist";

  # The words of a link; agentbox/plan/features/placeholders.py knows the same for the plan.
  words = { amd64 = [ "x86_64" "x64" ]; arm64 = [ "aarch64" "arm64" ]; }.${arch};
  filled = builtins.replaceStrings [ "{machine}" "{cpu}" "{python}" ] (words ++ [ python ]);

  stated = map
    (name: let file = read name; in {
      layer = if name == "core" then "base" else "f-${name}";
      links = map (map filled) (file.links or [ ]);
      wrappers = map (map filled) (file.wrappers or [ ]);
      folders = map (each: each.target) (file.volumes or [ ]);
      made = file.made or [ ];
    })
    names;

  # What two features state alike is both's.
  count = key: value: builtins.length (builtins.filter (each: builtins.elem value each.${key}) stated);
  unique = list: builtins.attrValues (builtins.listToAttrs (map (each: { name = builtins.toJSON each; value = each; }) list));
  ofLayer = key: layer:
    if layer == "f-shared" then
      unique (builtins.filter (value: count key value > 1) (builtins.concatMap (each: each.${key}) stated))
    else
      builtins.concatMap
        (each: builtins.filter (value: each.layer == layer && count key value == 1) each.${key})
        stated;
  needed = builtins.filter (layer: builtins.any (key: ofLayer key layer != [ ]) [ "links" "wrappers" "folders" ])
    ([ "f-shared" ] ++ map (each: each.layer) stated);
in
{
  links = ofLayer "links";
  wrappers = ofLayer "wrappers";
  folders = ofLayer "folders";
  # The layers of optional features that hold any of it, "f-shared" among them.
  layers = builtins.filter (layer: layer != "base") needed;
  # The features for which the build makes something: the layer of each, and its makers.
  making = map (each: { inherit (each) layer; makers = each.made; }) (builtins.filter (each: each.made != [ ]) stated);
}
