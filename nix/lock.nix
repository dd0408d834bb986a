# agentbox.lock as derivations. A row's output path follows from its name and SHA-256 alone, so a file that
# `agentbox fetch` added is valid already and the builder below never runs.
{ root, arch }:
let
  lock = builtins.fromTOML (builtins.readFile (root + "/agentbox.lock"));
  system = { amd64 = "x86_64-linux"; arm64 = "aarch64-linux"; }.${arch};

  need = what: set: name: set.${name} or (throw "agentbox.lock has no ${what} ${name}: run agentbox lock");
  absent = file: "${file} is not in the store: run agentbox fetch";

  # Static busybox and bash of the building machine: a directory, because busybox goes by its own name.
  # Nothing can run before it, so the sentence stands where the builder's path would.
  seed = derivation {
    inherit system;
    name = "busybox";
    builder = absent "busybox (the seed of ${arch})";
    outputHashMode = "recursive";
    outputHash = (need "seed for" lock.seed arch).nar;
  };

  fixed = row: derivation {
    inherit system;
    name = row.file;
    builder = "${seed}/bin/busybox";
    args = [ "sh" "-c" "echo \"$0\" >&2; exit 1" (absent row.file) ];
    outputHashAlgo = "sha256";
    outputHash = row.sha256;
  };

  withFile = row: row // { path = fixed row; };
  isFor = target: row: builtins.elem target (row.arch or [ target ]);
  rows = source: target: builtins.filter (isFor target) source.files;
in
{
  inherit lock seed system;
  inherit (lock) python;

  # The rows of one target arch, each with `path`, its file in the store.
  debian = target: map withFile (need "packages for" lock.debian target).files;
  wheels = target: map withFile (rows lock.wheels target);
  npm = target: map withFile (rows (lock.npm or { files = [ ]; }) target);

  # Which layer a row belongs to: "" for what only derivations use.
  layerOf = core: row:
    let asked = builtins.filter (name: name != "build") row.features;
    in
    if asked == [ ] then ""
    else if builtins.elem "core" asked then core
    else if builtins.length asked == 1 then "f-${builtins.head asked}"
    else "f-shared";
}
