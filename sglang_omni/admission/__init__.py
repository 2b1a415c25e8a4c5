"""Admission of requests to the thinker and the talker."""
