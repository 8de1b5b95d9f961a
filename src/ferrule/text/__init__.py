"""Matching, editing and comparing text: pure functions over strings."""
