"""Agents that a conversation starts: what kinds there are, and how one is given its work."""
