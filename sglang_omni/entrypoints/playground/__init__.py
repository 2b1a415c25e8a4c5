"""A page to try the server in: plain files, served as they lie here."""
