"""How many registers a thread of a Triton kernel may use."""

MAX_REGISTERS = 255
"""The most that a thread can have, as `maxnreg` of a launch.

Without it, the assembler saves registers so that a multiprocessor can run more programs. It then
issues some loads only after it has used those before them, and each such round waits for memory. A
kernel of few programs is faster with all loads in flight at once.
"""
