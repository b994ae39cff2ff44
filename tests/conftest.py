from hypothesis import settings

# The same examples on every machine, and no verdict on how fast it is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
