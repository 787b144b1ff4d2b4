"""Digests of many ranks -> one picture."""
