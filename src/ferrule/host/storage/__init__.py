"""What a session keeps on disk: its folder, transcripts, state, and files with a head."""
