"""Traces, timelines, metrics, logs and the audit log."""
