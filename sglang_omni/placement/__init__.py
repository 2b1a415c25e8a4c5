"""Placement of the engines on GPUs: checkpoint sizes, a pure planner, and its application."""
