"""Files: opened, decoded and written so that nothing is lost, and what each agent has seen of them."""
