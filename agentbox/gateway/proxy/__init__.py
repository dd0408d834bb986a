"""The forward proxy: destination checks, traffic limits and forwarding. Only HTTP and tunnels to
other machines belong here."""
