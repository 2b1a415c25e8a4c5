"""Recipes that build models for this server."""
