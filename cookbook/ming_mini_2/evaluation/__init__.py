"""Measurements of how a running server with the trained model speaks."""
