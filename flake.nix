{
  description = "Runs autonomous coding agents in a hardened box: one manifest, one reproducible image.";

  # For the second package source only (image.source = "nixpkgs"). Inputs are lazy: nothing under packages or checks
  # fetches it.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs = inputs: import ./nix/outputs.nix inputs;
}
