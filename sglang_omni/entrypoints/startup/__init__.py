"""What is checked and chosen before the engines start."""
