"""What the model gets besides the conversation: instructions of people and projects, facts, and how to work."""
