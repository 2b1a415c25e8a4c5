"""What clients may send, field by field."""
