"""Other people's tools: servers of the Model Context Protocol, and what they offer."""
