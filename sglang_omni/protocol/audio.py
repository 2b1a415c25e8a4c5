"""Formats of audio that clients receive."""

from typing import Literal

AudioFormat = Literal["wav", "pcm", "mp3", "opus", "aac", "flac"]
