"""When the words of synthesised speech are spoken."""
