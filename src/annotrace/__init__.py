"""Learn from labels that people disagree on."""
