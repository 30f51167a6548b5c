"""The subcommands of `penstock` that this package adds."""
