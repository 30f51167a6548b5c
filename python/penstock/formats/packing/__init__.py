"""What a write makes of its elements: compressed chunks, encoded on the cores of the host, and text."""
