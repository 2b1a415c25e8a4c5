"""Text front end: from text to fragments that the talker reads; see `front.split_fragments`."""
