"""Runs of a task under load: passes, journal, records and their summary."""
