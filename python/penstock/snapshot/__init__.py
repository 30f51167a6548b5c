"""All fields of a model at one moment: a Snapshot and its facts."""
