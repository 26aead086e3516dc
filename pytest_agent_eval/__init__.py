"""Evaluate AI agents with pytest."""
