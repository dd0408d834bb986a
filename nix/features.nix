# The feature files, as far as the image needs them here: which links a layer gets. The packages come from the lock.
{ root }:
let
  folder = root + "/config/features";
  files = builtins.readDir folder;
  read = name:
    if files ? "${name}.toml" then builtins.fromTOML (builtins.readFile (folder + "/${name}.toml"))
    else throw "agentbox.lock names the feature ${name}, and config/features/${name}.toml does not exist";
in
{
  links = names: builtins.concatMap (name: (read name).links or [ ]) names;
}
