"""What engines on other machines cost."""
