"""Whether a text normaliser's words say what a written text means, whatever their spelling."""
