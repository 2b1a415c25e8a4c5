"""Media: fetching, images, video, audio, codecs and voice activity."""
