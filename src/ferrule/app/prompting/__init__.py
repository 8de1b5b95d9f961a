"""What becomes of a prompt before the model reads it: files that it names, commands that Ferrule answers itself."""
