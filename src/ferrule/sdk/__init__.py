"""Ways into Ferrule for other programs: tools of their own, and our tools in their loops."""
