"""Attacks of one client on the server, and their cost for another."""
