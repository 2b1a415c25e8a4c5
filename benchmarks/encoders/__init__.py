"""The image and audio encoders."""
