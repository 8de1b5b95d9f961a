"""What Ferrule costs, measured beside its peers: `python -m benchmarks`."""
