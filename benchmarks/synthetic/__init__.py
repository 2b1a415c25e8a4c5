"""Engines without models, and checkpoints of random weights."""
