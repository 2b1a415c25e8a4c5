"""Processes that decode media files."""
