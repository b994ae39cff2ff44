"""For people: figures, and the HTML page."""
