"""What a model needs to go on: a Restart and its facts."""
