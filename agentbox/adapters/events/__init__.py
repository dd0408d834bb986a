"""The events slot: an append-only, hash-chained journal. One module per implementation; the
journal's files and the delivery to a sink are packages."""
