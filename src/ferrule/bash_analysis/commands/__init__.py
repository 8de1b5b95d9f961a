"""The table of known commands: data, and readers for the arguments that are languages of their own."""
