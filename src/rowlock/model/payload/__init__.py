"""Payloads: arguments and results as JSON text and back."""
