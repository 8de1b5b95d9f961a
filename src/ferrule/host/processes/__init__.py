"""Commands and other processes: started, held by a sandbox, read and ended."""
