"""Process that compiles grammars before the thinker sees them."""
