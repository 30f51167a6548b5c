"""Writing compressed chunks: what is asked, which chunks, and encoding them on the cores of the host."""
