"""Placement of engines on machines and GPUs: checkpoint sizes, pure planners, application."""
