"""What a shell command would do, read off its text: pure, no disk, no processes."""
