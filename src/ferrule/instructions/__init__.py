"""What the model is told besides the conversation: instructions of people and projects, facts, and how to work."""
