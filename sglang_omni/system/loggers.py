"""Loggers that several layers share."""

import logging

OUTPUT_LOG = logging.getLogger("sglang_omni.engine_output")
"""Lines that engine processes print, where the log is JSON."""
