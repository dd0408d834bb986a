"""Replaces maintainer scripts of a feature's packages at image build time. One module per maker."""
