"""The server: engines and pipeline, built from the configuration."""
