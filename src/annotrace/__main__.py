"""`python -m annotrace`: the command line, where its script is not on the path."""

from annotrace.cli.main import run

if __name__ == "__main__":
    run()
