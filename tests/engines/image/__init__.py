"""The image engine, in the test's process and in one of its own."""
