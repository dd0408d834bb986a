"""Resolves what an image consists of, and brings it into the Nix store. What is special to a
package manager goes into its package.
"""
