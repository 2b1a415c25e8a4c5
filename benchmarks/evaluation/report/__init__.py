"""Tables, figures and plots of finished runs."""
