"""The speaking half of the recipe: teachers, corpus, audio VAE and talker."""
