"""The web from here: which addresses may be reached, pages fetched from there, and searches."""
