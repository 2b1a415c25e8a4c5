"""Marks of tests that only some families can pass."""

import pytest

from sglang_omni.models.plain import PlainSpeechText
from tests.testing.family import SPEECH_TEXT
from tests.testing.family_under_test import WITHOUT_RULES

needs_rules = pytest.mark.skipif(isinstance(SPEECH_TEXT, PlainSpeechText), reason=WITHOUT_RULES)
