"""Programs written for other libraries, run by this one with another import."""
