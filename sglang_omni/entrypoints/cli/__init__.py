"""The subcommands of `sgl-omni`, one module each."""
