"""Whole servers, used as users use them."""
