"""Encoders of images, video and audio."""
