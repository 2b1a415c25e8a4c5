"""The words that a transcript with digits and signs may stand for, and their errors.

It shares nothing with the product's own text front end, which it judges.
"""
