"""Engine of the image and audio encoders, and its client with a cache."""
