"""Models, behind one small port."""
