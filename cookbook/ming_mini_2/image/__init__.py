"""Pictures from text: what Ming-mini 2 draws and edits, and how it is trained to."""
