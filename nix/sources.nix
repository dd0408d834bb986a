# Cuts this repository down to what one derivation needs (sources.toml says what that is).
{ root }:
let
  wanted = builtins.fromTOML (builtins.readFile ./sources.toml);
  strip = path: builtins.substring (builtins.stringLength (toString root) + 1) (-1) (toString path);
  startsWith = prefix: text: builtins.substring 0 (builtins.stringLength prefix) text == prefix;
  skipped = [ "__pycache__" ];
  keeps = list: path: type:
    let here = strip path; in
    !(builtins.elem (baseNameOf path) skipped) && builtins.any
      (entry: here == entry || startsWith "${entry}/" here || (type == "directory" && startsWith "${here}/" entry))
      list;
in
builtins.mapAttrs
  (name: list: builtins.path { path = root; name = "agentbox-${name}-source"; filter = keeps list; })
  wanted
