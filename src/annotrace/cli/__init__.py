"""The commands, one file each; see `annotrace --help`."""
