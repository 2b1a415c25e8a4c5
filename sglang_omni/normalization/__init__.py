"""Text normalisation: written text to the words that are spoken, in English and Chinese."""
