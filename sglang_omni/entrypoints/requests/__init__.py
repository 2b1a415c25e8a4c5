"""Conversion of request bodies to requests of the pipeline."""
