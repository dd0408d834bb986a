"""Resolves the packages of an image and puts them into the Nix store. Code for one package manager
belongs in its package.
"""
