"""The thinker's engine, run by SGLang in processes of its own."""
