"""Image output: from the thinker's states at the query tokens to pixels."""
