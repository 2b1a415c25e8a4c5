"""The recipe of the next version of Ming-mini, which is not trained yet."""
