"""The layers and losses for a training loop of one's own: a door to `annotrace.models`."""

from annotrace.models import *  # noqa: F403
from annotrace.models import __all__ as __all__
