# The command line, run by the unpacked Python over the image's libraries and wheels and those of builds; the formatter; a shell with the
# command in it. Resolving a lock needs pip, which no image has: agentbox.sh does that.
{ build, base, libraries, tools, arch, source }:
let
  triplet = { amd64 = "x86_64-linux-gnu"; arm64 = "aarch64-linux-gnu"; }.${arch};
  part = builtins.elemAt build.interpreter; # loader, --library-path, its folder, python

  # A program that runs the command line with `words` before its arguments.
  command = name: words: derivation {
    inherit name;
    inherit (build) system;
    builder = "${build.seed}/bin/bash";
    args = [ ./app.sh ];
    busybox = "${build.seed}/bin/busybox";
    shell = "${build.seed}/bin/bash";
    line = builtins.concatStringsSep " " ([
      (part 0)
      (part 1)
      "${part 2}:${base}/usr/lib/${triplet}"
      (part 3)
      "-I"
      "-B"
      "${./run.py}"
      "${source}:${libraries}:${tools}"
      "agentbox"
    ] ++ words);
  };
  all = command "agentbox" [ ];
  app = program: { type = "app"; program = "${program}/bin/${program.name}"; };
in
{
  apps = {
    default = app all;
    up = app (command "agentbox-up" [ "up" ]);
    verify = app (command "agentbox-verify" [ "verify" ]);
  };
  formatter = derivation {
    name = "agentbox-fmt";
    inherit (build) system;
    builder = "${build.seed}/bin/bash";
    args = [ ./app.sh ];
    busybox = "${build.seed}/bin/busybox";
    shell = "${build.seed}/bin/bash";
    # The checkout is where `nix fmt` was called: the store's copy cannot change.
    line = "./agentbox.sh fmt";
  };
  # `nix develop` starts a builder named bash and reads `outputs`.
  devShell = derivation {
    name = "agentbox-shell";
    inherit (build) system;
    builder = "${build.seed}/bin/bash";
    args = [ "-c" "echo : > $out" ];
    outputs = [ "out" ];
    PATH = "${all}/bin";
  };
}
