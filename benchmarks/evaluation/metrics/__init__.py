"""Metrics of speech: transcripts of recognisers, mel distance, speaker similarity."""
