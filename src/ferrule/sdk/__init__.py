"""Ways into Ferrule for other programs: tools of one's own, and our tools in other people's loops."""
