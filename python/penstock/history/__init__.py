"""Output of a running model: a History and its facts."""
