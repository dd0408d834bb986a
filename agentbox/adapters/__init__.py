"""The five slots: contracts, implementations, and the one way to call them."""
