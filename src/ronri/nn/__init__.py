"""Building blocks that reasoners share."""
