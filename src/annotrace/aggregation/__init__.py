"""Truth from labels alone: one file a method."""
