"""One folder for each reasoner; nothing outside names one of them (see `ronri.registry`)."""
