"""Engines, each in processes of its own, and the runtime that they share."""
