"""What an agent holds: rights minted at its start, narrowed from its parent's, and taken back."""
