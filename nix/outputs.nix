# Everything this flake offers. `packages` and `checks` need neither nixpkgs nor a network, only the files that
# `agentbox fetch` put into the store.
{ self, nixpkgs }:
let
  root = ./..;
  locked = (builtins.fromTOML (builtins.readFile (root + "/agentbox.lock"))).systems;
  arches = { x86_64-linux = "amd64"; aarch64-linux = "arm64"; };
  # A copy without git says its commit in a file.
  stated = root + "/.revision";
  unsaid = if builtins.pathExists stated then builtins.head (builtins.split "\n" (builtins.readFile stated)) else "dirty";
  revision = self.rev or unsaid;
  version = builtins.head (builtins.match ".*\n__version__ = \"([^\"]*)\".*" (builtins.readFile (root + "/agentbox/__init__.py")));
  sources = import ./sources.nix { inherit root; };

  # `host` builds, `arch` is built for: unpacking runs no foreign code.
  on = host:
    let
      lock = import ./lock.nix { inherit root; arch = host; };
      unpacked = import ./debian/unpack.nix {
        inherit (lock) seed system python;
        rows = lock.debian host;
        arch = host;
      };
      build = unpacked // { inherit (lock) seed system; };
      wheels = import ./debian/python.nix { inherit lock build; };
      tools = wheels.tools (lock.wheels host);
      image = arch: testHooks: import ./image.nix {
        inherit root lock build sources tools arch revision version testHooks;
        libraries = libraries;
        made = native.making;
      };
      native = image host false;
      treeOf = name: (builtins.head (builtins.filter (each: each.name == name) native.trees)).tree;
      base = treeOf "base";
      libraries = "${treeOf "python"}/opt/agentbox/venv/lib/python${lock.python}/site-packages";
    in
    { inherit lock build native image base libraries tools; };

  # Only what the lock covers.
  systems = builtins.listToAttrs (map (name: { inherit name; value = arches.${name}; }) locked);
  forSystems = f: builtins.mapAttrs f systems;
  offered = host: let here = on host; in import ./apps.nix {
    inherit (here) build libraries tools base;
    arch = host;
    source = root;
  };
  crossImages = here: builtins.listToAttrs
    (map (arch: { name = "image-${arch}"; value = (here.image arch false).archive; }) (builtins.attrValues systems));
in
{
  packages = forSystems (system: host:
    let here = on host; in
    {
      default = here.native.archive;
      image = here.native.archive;
      compose = here.native.compose;
      supervisord = here.native.supervisord;
      sbom = here.native.sbom;
      rootfs = here.native.rootfs;
      image-test-hooks = (here.image host true).archive;
    } // crossImages here);

  checks = forSystems (system: arch:
    let here = on arch; in
    import ./checks { inherit (here) build; inherit sources; image = here.native; });

  apps = forSystems (system: host: (offered host).apps);
  formatter = forSystems (system: host: (offered host).formatter);
  devShells = forSystems (system: host: { default = (offered host).devShell; });

  # Kept out of `packages`, which `flake check` and `show` look into: parts of the image, and what would need nixpkgs.
  legacyPackages = forSystems (system: host: {
    inherit ((on host).native) steps described;
    image-nixpkgs = throw "image-nixpkgs is not built yet: the package source nixpkgs comes later; .#image is made of Debian packages";
  });
}
