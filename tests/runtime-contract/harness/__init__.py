"""What the runtime contract runs against: real boxes, started from the rendered files."""
