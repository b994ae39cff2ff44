"""The recommended estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from annotrace.methods.cross_fitted_em import CrossFittedEM


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdClassifier(CrossFittedEM):
    """The recommended recipe, with nothing to tune.

    At present it is `CrossFittedEM`, which chooses how its networks learn: it was the best, or
    level with the best, on every set that was tried (docs/methods.md has the tables). A later
    version may choose another method; name a method to keep it.

    Parameters
    ----------
    **all
        See `CrossFittedEM`.

    Examples
    --------
    >>> from annotrace.data import load_digits
    >>> from annotrace.simulate import hammer_spammers, simulate_labels
    >>> train, test = load_digits().split(600)
    >>> table = simulate_labels(train.y, hammer_spammers(5, 10, 0.6, random_state=0),
    ...                         labels_per_item=2, random_state=0)
    >>> model = CrowdClassifier(random_state=0).fit(train.X, table)
    >>> bool(model.score(test.X, test.y) > 0.9)
    True
    """

    method: ClassVar[str] = "auto"
