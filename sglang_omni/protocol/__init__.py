"""Types of OpenAI's API: the bodies that clients send, and the errors that the server returns."""
