"""What decodes chunks: the choice of it, what it takes, and nvCOMP."""
