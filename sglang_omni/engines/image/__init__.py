"""The image engine: draws images in steps that several requests share."""
