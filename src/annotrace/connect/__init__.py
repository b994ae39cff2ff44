"""Live connections to labelling tools: labels in; predictions, queues and gold out."""

from annotrace.connect.doccano import Doccano
from annotrace.connect.label_studio import LabelStudio
from annotrace.connect.tool import LabellingTool, MarkedGold, Prediction, Pulled, Pushed

__all__ = [
    "Doccano",
    "LabelStudio",
    "LabellingTool",
    "MarkedGold",
    "Prediction",
    "Pulled",
    "Pushed",
]
