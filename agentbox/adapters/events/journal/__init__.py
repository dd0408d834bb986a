"""The journal on disk: segments, chain, writer, reader, recovery, verification. Only code of its
file format belongs here."""
