"""One round of `annotrace connect`: fit to what was pulled, write the run, and write back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.aggregate import fit_aggregation, make_aggregation
from annotrace.cli.connect_items import TaskImages, TaskItems
from annotrace.cli.label_files import describe_labels
from annotrace.cli.output import echo_warnings, print_result, save_with_report

if TYPE_CHECKING:
    from annotrace.aggregation import Aggregation
    from annotrace.connect import LabellingTool, Pulled
    from annotrace.labels import LabelTable
    from annotrace.methods import CrowdEstimator

MAX_NAMES = 5


@dataclass(frozen=True)
class Wishes:
    """What the command line asks of every round; not every tool can be written to."""

    text: str | None
    method: str | None
    gold: Path | None
    cost: float | None
    min_gain: float
    seed: int
    anonymous: bool
    raw: bool
    quiet: bool
    push: bool = False
    queue: bool = False
    budget: float | None = None
    available: Any = None
    costs: Any = 1.0
    image: TaskImages | None = None
    encoder: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None and self.image is not None:
            raise click.UsageError("Give --text FIELD or --image FIELD, not both.")
        if self.encoder is not None and not self.has_items:
            raise click.UsageError("--encoder goes with --text FIELD or --image FIELD.")

    @property
    def has_items(self) -> bool:
        """Whether a classifier is to be trained on texts or images."""
        return self.text is not None or self.image is not None


@dataclass
class Round:
    """Repeats the same work on a project as its answers change; the folder is locked.

    The first round prints what `annotrace aggregate` or `annotrace fit` prints, all rounds one line
    of status.
    """

    tool: LabellingTool
    out: Path
    wishes: Wishes
    _items: TaskItems = field(init=False)
    _model: CrowdEstimator | Aggregation | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        wishes = self.wishes
        self._items = TaskItems(self.tool, wishes.text, wishes.image, wishes.encoder, wishes.quiet)

    def run(self, pulled: Pulled) -> Pulled:
        """Fit, write the run and what is to be pushed; return what was fitted to."""
        pulled, gold = self._use_gold(pulled)
        if pulled.table is None:
            self._say(f"{len(pulled.data):,} items and no labels yet.")
            return pulled
        is_first = self._model is None
        if is_first:
            notes = (f"Note: {note}" for note in pulled.notes)
            self._say("\n".join([describe_labels(pulled.table, pulled.used), *notes]))
        model = self._fit(pulled, gold)
        shown = self._items.report_options() if self.wishes.has_items else {}
        options = {"raw": self.wishes.raw, "anonymous": self.wishes.anonymous, **shown}
        where = save_with_report(model, self.out, True, **options)
        self._model = model
        if is_first and not self.wishes.quiet:
            print_result(model)
            click.echo(f"Wrote {self.out}. {where}")
        self._write_back(model)
        return pulled

    def _use_gold(self, pulled: Pulled) -> tuple[Pulled, dict[str, str] | None]:
        """Mark given gold items in the tool, and return all gold items."""
        from annotrace.connect.estimation import check_gold, gold_of
        from annotrace.labels.side_tables import read_gold

        given = {} if self.wishes.gold is None else read_gold(self.wishes.gold)
        check_gold(pulled, given, str(self.wishes.gold))
        if given and pulled.table is not None and self._mark_gold(given):
            pulled = self.tool.pull()
        return pulled, None if pulled.table is None else gold_of(pulled.table, given)

    def _mark_gold(self, given: dict[str, str]) -> bool:
        """Mark gold items if the tool can, and return whether any are marked now."""
        from annotrace.errors import UnsupportedError

        is_first = self._model is None
        try:
            marked = self.tool.mark_gold(given)
        except UnsupportedError as error:
            if is_first:
                self._say(f"Gold: {len(given):,} used. {error}")
            return False
        if marked.n_marked or is_first:
            self._describe_gold(marked)
        return marked.n_marked > 0

    def _describe_gold(self, marked: Any) -> None:
        from annotrace.errors import first_few

        n_known, n_marked, unmarked = marked
        line = f"Gold: {n_marked:,} marked as ground truth, {n_known:,} were already"
        if unmarked:
            line += (
                f"; {len(unmarked):,} could not be, as nobody has given that class "
                f"({first_few(unmarked, MAX_NAMES)})"
            )
        self._say(f"{line}.")

    def _fit(self, pulled: Pulled, gold: dict[str, str] | None) -> CrowdEstimator | Aggregation:
        """Fit from labels alone, or with texts or images.

        Classifiers continue from the last fit. Aggregations start again: they take seconds, and the
        same labels then give the same predictions after any history.
        """
        assert pulled.table is not None
        if self.wishes.has_items:
            return self._fit_classifier(pulled, pulled.table, gold)
        aggregation = make_aggregation(self.wishes.method, self.wishes.seed)
        fit_aggregation(aggregation, pulled.table, gold)
        return aggregation

    def _fit_classifier(
        self, pulled: Pulled, table: LabelTable, gold: dict[str, str] | None
    ) -> CrowdEstimator:
        from annotrace.methods import make
        from annotrace.methods.inputs import leave_out_skipped

        source = self._items.read(pulled)
        with echo_warnings("images"):
            table = leave_out_skipped(table, source)
        model: Any = self._model
        if model is None or model.table_.classes.tolist() != table.classes.tolist():
            model = make(self.wishes.method or "auto", random_state=self.wishes.seed)
            model.set_params(verbose=not self.wishes.quiet, warm_start=True)
        kept = set(map(str, table.items.tolist()))
        known = {item: name for item, name in (gold or {}).items() if item in kept}
        model.fit(source, table, gold=known or None)
        return model  # type: ignore[no-any-return]

    def _write_back(self, model: CrowdEstimator | Aggregation) -> None:
        from annotrace.connect.estimation import Status, describe_gain, plan_queue, predictions_of
        from annotrace.errors import count

        wishes = self.wishes
        queue = plan_queue(model, wishes.budget, wishes.available, wishes.costs)
        if wishes.push:
            pushed = self.tool.push(predictions_of(model))
            gone = f"; {count(pushed.n_gone, 'item was', 'items were')} deleted meanwhile"
            sent = f"{pushed.n_sent:,} predictions" if pushed.n_sent else "no change"
            self._say(f"Pushed {pushed.version}: {sent}{gone if pushed.n_gone else ''}.")
        if wishes.queue:
            for name, address in self.tool.queue(queue.items).items():
                self._say(f"{count(len(queue.items[name]), 'item')} for {name}: {address}")
        self._say(f"{Status.of(model, wishes.cost)}.")
        if (ended := describe_gain(queue.best_gain, wishes.min_gain, wishes.cost)) is not None:
            self._say(ended)

    def _say(self, line: str) -> None:
        if not self.wishes.quiet:
            click.echo(line)
