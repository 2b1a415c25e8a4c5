"""The playground: a web page to try the server, made of plain files."""
