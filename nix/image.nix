# One system's image: trees, layers, archive. `made` is what the building machine's own image makes for its features: it
# runs programs of that image, and what they write is the same for every system.
{ root, lock, build, sources, tools, libraries, arch, revision, version, made, testHooks ? false }:
let
  inherit (lock) python;
  target = { amd64 = "x86_64-linux"; arm64 = "aarch64-linux"; }.${arch};
  debian = lock.debian arch;
  wheels = lock.wheels arch;
  npm = lock.npm arch;

  mkTree = import ./debian/rootfs.nix { inherit build sources tools python arch; };
  inherit (import ./debian/python.nix { inherit lock build; }) ofLayer;
  npmOf = (import ./debian/npm.nix { inherit lock; }).ofLayer;
  features = import ./features.nix { inherit root arch python; names = lock.lock.features; };
  plan = import ./generated.nix { inherit build sources libraries target testHooks; };

  sbom = import ./sbom.nix { inherit lock build sources tools arch plan debian wheels npm; };

  debianOf = layer: map (row: { inherit (row) name version path; })
    (builtins.filter (row: lock.layerOf "base" row == layer) debian);
  interpreter = builtins.head (builtins.filter (row: row.name == "python${python}-minimal") debian);

  # Layers of optional features, in order of their names: those that any row asks for, or that hold links and folders.
  asked = builtins.filter (name: builtins.substring 0 2 name == "f-") (map (lock.layerOf "base") (debian ++ wheels ++ npm));
  optional = builtins.attrNames (builtins.listToAttrs (map (name: { inherit name; value = null; }) (asked ++ features.layers)));
  stated = layer: { links = features.links layer; wrappers = features.wrappers layer; folders = features.folders layer; };

  specs = [
    { layer = "base"; spec = { skeleton = true; debian = debianOf "base"; } // stated "base"; }
    { layer = "python"; spec = { environment = interpreter.version; wheels = ofLayer "python" wheels; }; }
  ] ++ map
    (layer: { inherit layer; spec = { debian = debianOf layer; wheels = ofLayer layer wheels; npm = npmOf layer npm; } // stated layer; })
    optional ++ map (each: { layer = "f-${each.name}-made"; spec.overlays = [ [ "generated:made" each.files ] ]; }) made ++ [
    { layer = "app"; spec = { application = sources.application; }; }
    { layer = "config"; spec = { overlays = [ [ "generated:config" plan ] [ "generated:sbom" sbom ] ]; }; }
  ];

  trees = map (each: { name = each.layer; tree = mkTree each; }) specs;
  making = map
    ({ layer, makers }: rec {
      name = builtins.substring 2 (-1) layer;
      files = build.run {
        name = "made-${name}";
        folders = [ sources.made ];
        module = "agentbox.host.image.maintainer_scripts";
        attributes = {
          passAsFile = [ "spec" ];
          spec = builtins.toJSON {
            inherit makers;
            loader = builtins.head build.interpreter;
            trees = map (each: each.tree.out) (builtins.filter (each: builtins.elem each.name [ "base" "f-shared" layer ]) trees);
          };
        };
        args = [ "@spec" (placeholder "out") ];
      };
    })
    features.making;
  layer = { name, tree }: build.run {
    name = "layer-${name}";
    folders = [ sources.oci ];
    module = "agentbox.host.image.oci.layer";
    args = [ tree.out tree.list (placeholder "out") ];
  };
  layers = map (each: each // { packed = layer each; }) trees;

  archive = build.run {
    name = "agentbox-${version}-${arch}.tar";
    folders = [ sources.oci ];
    module = "agentbox.host.image.oci.archive";
    attributes = {
      passAsFile = [ "spec" ];
      spec = builtins.toJSON {
        inherit arch revision;
        plan = "${share}/plan.json";
        layers = map (each: { inherit (each) name; packed = each.packed; listed = each.tree.list; }) layers;
      };
    };
    args = [ "@spec" (placeholder "out") ];
  };
  share = "${plan}/opt/agentbox/share";
  compose = build.run {
    name = "compose";
    folders = [ ./. sources.plan libraries ];
    module = "compose_folder";
    args = [ "${share}/plan.json" "${share}/agentbox.toml" archive (placeholder "out") ];
  };
  # A shell script of this folder, run by the seed.
  script = name: file: attributes: derivation ({
    inherit name;
    inherit (build) system;
    builder = "${build.seed}/bin/bash";
    args = [ file ];
    busybox = "${build.seed}/bin/busybox";
  } // attributes);
  rootfs = script "rootfs" ./merge.sh { trees = map (each: each.tree.out) trees; };
  supervisord = script "supervisord.conf" ./copy.sh { file = "${plan}/etc/supervisord.conf"; };
in
{
  inherit archive plan sbom compose rootfs supervisord trees making;
  # What the checks look at: every layer's files, list and packed form, and the bill of materials.
  described = {
    inherit arch;
    sbom = "${sbom}/opt/agentbox/share/sbom.cdx.json";
    layers = map (each: { inherit (each) name packed; tree = each.tree.out; listed = each.tree.list; }) layers;
  };
  # Every derivation between the locked files and the archive, by name: what `agentbox verify` builds again.
  steps = builtins.listToAttrs (
    [ { name = "plan"; value = plan; } { name = "sbom"; value = sbom; } { name = "image"; value = archive; } ]
    ++ map (each: { name = "made-${each.name}-files"; value = each.files; }) made
    ++ map (each: { name = "tree-${each.name}"; value = each.tree; }) trees
    ++ map (each: { name = "layer-${each.name}"; value = each.packed; }) layers
  );
}
