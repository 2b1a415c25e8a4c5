"""The configuration: one tree of options, from a file and the command line."""
