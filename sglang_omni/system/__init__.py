"""Settings of the process: allocator, timers, loggers and reported progress."""
