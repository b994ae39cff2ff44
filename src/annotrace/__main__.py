"""`python -m annotrace`: the command line, where its script is not on the path."""

from annotrace.cli.main import main

if __name__ == "__main__":
    main(prog_name="annotrace")
