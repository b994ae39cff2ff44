"""Export formats of labelling tools, detected by content; one file per tool."""

from annotrace.labels.formats.argilla import ARGILLA
from annotrace.labels.formats.base import Format
from annotrace.labels.formats.cvat import CVAT
from annotrace.labels.formats.doccano import DOCCANO
from annotrace.labels.formats.ground_truth import GROUND_TRUTH
from annotrace.labels.formats.label_studio import LABEL_STUDIO, LABEL_STUDIO_MIN
from annotrace.labels.formats.label_studio_csv import LABEL_STUDIO_CSV
from annotrace.labels.formats.labelbox import LABELBOX
from annotrace.labels.formats.peerannot import PEERANNOT
from annotrace.labels.formats.prodigy import PRODIGY

__all__ = ["FORMATS", "Format"]

# Tried in this order; the least specific format, any object of objects, comes last.
FORMATS = (
    LABEL_STUDIO,
    LABEL_STUDIO_MIN,
    LABEL_STUDIO_CSV,
    LABELBOX,
    GROUND_TRUTH,
    ARGILLA,
    PRODIGY,
    DOCCANO,
    CVAT,
    PEERANNOT,
)
