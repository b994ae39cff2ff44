"""The paper's tables and figures, one file each; `python -m annotrace.experiments NAME` runs one.

`registry` lists them, `sweep` runs them, and `results.jsonl` is all that drawing needs.
"""
