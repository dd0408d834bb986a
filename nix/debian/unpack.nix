# The build Python: the locked Debian interpreter unpacked by the seed, run through its own loader, since the
# sandbox has no /lib64, no /usr and no shell.
{ rows, seed, system, python, arch }:
let
  triplet = { amd64 = "x86_64-linux-gnu"; arm64 = "aarch64-linux-gnu"; }.${arch};
  loader = { amd64 = "ld-linux-x86-64.so.2"; arm64 = "ld-linux-aarch64.so.1"; }.${arch};

  wanted = builtins.filter (row: builtins.elem "build" row.features) rows;

  unpacked = derivation {
    inherit system;
    name = "buildpython";
    builder = "${seed}/bin/bash";
    args = [ ./unpack.sh ];
    busybox = "${seed}/bin/busybox";
    debs = map (row: row.path) wanted;
  };
  library = "${unpacked}/usr/lib/${triplet}";
  python3 = "${unpacked}/usr/bin/python${python}";
  interpreter = [ "${library}/${loader}" "--library-path" library python3 ];
in
{
  inherit unpacked interpreter;
  # A derivation that runs `module` with these folders on its path. Everything in `attributes` is its environment.
  run = { name, folders, module, attributes ? { }, args ? [ ] }: derivation ({
    inherit system name;
    builder = builtins.head interpreter;
    args = builtins.tail interpreter ++ [
      "-I"
      "-B"
      ../run.py
      (builtins.concatStringsSep ":" folders)
      module
    ] ++ args;
    LANG = "C.UTF-8";
    PYTHONHASHSEED = "0";
  } // attributes);
}
