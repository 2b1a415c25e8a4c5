"""Evaluations of any server of OpenAI's API: answers, speech, tables, regression gates."""
