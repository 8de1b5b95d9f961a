"""Our tools as an MCP server. Importing a module of this package loads `mcp`, which takes seconds."""
