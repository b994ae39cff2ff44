"""`annotrace simulate`: labels by annotators whose confusion matrices are known."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.options import PATH, out_options, raw_option, seed_option
from annotrace.cli.output import check_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from annotrace.data import LabelledSet
    from annotrace.labels import LabelTable

FILES = ("labels.csv", "features.npz", "test.npz", "confusion.npz")
N_TRAIN = 1400


def parse_labels_per_item(value: str) -> int | None:
    """Parse a number, or "all" as None."""
    if value == "all":
        return None
    if not value.isdecimal():
        raise click.BadParameter(f"expected a number or 'all', but got {value!r}.")
    return int(value)


@click.command(short_help="Simulate labels, to try things out.")
@out_options("FOLDER", "Folder to write the files to.")
@click.option(
    "--data",
    type=click.Choice(["digits", "mnist", "cifar10"]),
    default="digits",
    show_default=True,
    help="The items; digits needs no download.",
)
@click.option(
    "--data-dir",
    type=PATH,
    metavar="FOLDER",
    help="Folder with the files of MNIST or CIFAR-10.",
)
@click.option(
    "--annotators",
    type=click.Choice(["pairwise", "hammer", "cifar10"]),
    default="pairwise",
    show_default=True,
    help="pairwise: each confuses every class with one other; hammer: correct, or a random class; "
    "cifar10: the four of the paper's CIFAR-10 experiments.",
)
@click.option("--n-annotators", type=click.IntRange(min=1), help="How many; 5 by default.")
@click.option(
    "--skill",
    type=click.FloatRange(0, 1),
    help="How often they are correct (pairwise), or know the answer (hammer); 0.5 by default.",
)
@click.option(
    "--labels-per-item",
    type=parse_labels_per_item,
    metavar="N|all",
    default="1",
    show_default=True,
    help="How many annotators, drawn at random, label each item.",
)
@seed_option("The same seed gives the same labels.")
@raw_option
def simulate(
    out: Path,
    overwrite: bool,
    data: str,
    data_dir: Path | None,
    annotators: str,
    n_annotators: int | None,
    skill: float | None,
    labels_per_item: int | None,
    seed: int,
    raw: bool,
) -> None:
    """Simulate labels by annotators whose confusion matrices are known.

    FOLDER gets labels.csv (item, annotator, label, truth), features.npz (the items), test.npz
    (items without labels, with their truth) and confusion.npz (the true matrices:
    confusion[annotator, true, reported]).

    \b
    Examples:
      annotrace simulate --out sim
      annotrace fit sim/labels.csv --features sim/features.npz --out run
      annotrace simulate --annotators hammer --skill 0.3 --labels-per-item all --out dense
      annotrace simulate --data mnist --data-dir mnist/ --out sim-mnist
    """
    from annotrace.labels.writing import write_confusion

    check_folder(out, FILES, overwrite)
    train, test = _load(data, data_dir)
    confusion = _draw(annotators, n_annotators, skill, len(train.classes), seed)
    table = _label(train, confusion, labels_per_item, seed)
    out.mkdir(parents=True, exist_ok=True)
    table.write(out / "labels.csv", raw=raw)
    _write_items(out / "features.npz", train, first=0, with_truth=False)
    _write_items(out / "test.npz", test, first=len(train.y), with_truth=True)
    write_confusion(out, table, confusion)
    _print_summary(table, confusion, out)


def _load(data: str, folder: Path | None) -> tuple[LabelledSet, LabelledSet]:
    from annotrace.data import load_cifar10, load_digits, load_mnist
    from annotrace.errors import InputError

    if data == "digits":
        return load_digits().split(N_TRAIN)
    if folder is None:
        raise InputError(f"--data {data} needs the folder with its files: --data-dir FOLDER.")
    return (load_mnist if data == "mnist" else load_cifar10)(folder)


def _draw(
    kind: str, n_annotators: int | None, skill: float | None, n_classes: int, seed: int
) -> NDArray[np.float64]:
    from annotrace.errors import InputError
    from annotrace.simulate import cifar10_annotators, hammer_spammers, pairwise_flippers

    if kind == "cifar10":
        if n_annotators is not None or skill is not None:
            raise InputError(
                "The cifar10 annotators are four with fixed skills; leave out --n-annotators and "
                "--skill."
            )
        return cifar10_annotators()
    draw = pairwise_flippers if kind == "pairwise" else hammer_spammers
    n = 5 if n_annotators is None else n_annotators
    return draw(n, n_classes, 0.5 if skill is None else skill, random_state=seed)


def _label(
    train: LabelledSet, confusion: NDArray[np.float64], labels_per_item: int | None, seed: int
) -> LabelTable:
    """Simulate the labels, with names for items and annotators."""
    from annotrace.labels.vocabulary import as_names
    from annotrace.simulate import simulate_labels

    drawn = simulate_labels(train.y, confusion, labels_per_item=labels_per_item, random_state=seed)
    digits = len(str(drawn.n_annotators))
    return drawn.replace(
        items=as_names([str(k) for k in range(drawn.n_items)]),
        annotators=as_names([f"a{k:0{digits}}" for k in range(1, drawn.n_annotators + 1)]),
        classes=train.classes,
        positional=False,
    )


def _write_items(path: Path, items: LabelledSet, first: int, with_truth: bool) -> None:
    import numpy as np

    from annotrace.atomic import atomic_write

    names = np.array([str(first + k) for k in range(len(items.y))])
    arrays: dict[str, Any] = {"X": items.X, "items": names}
    if with_truth:
        arrays["truth"] = np.array(items.classes[items.y].tolist())
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def _print_summary(table: LabelTable, confusion: NDArray[np.float64], out: Path) -> None:
    from annotrace.diagnosis import is_diagonally_dominant

    correct = float((table.label == table.truth[table.item]).mean())  # type: ignore[index]
    click.echo(
        f"{table.n_labels:,} labels of {table.n_items:,} items by {table.n_annotators:,} "
        f"annotators; {correct:.1%} of the labels are correct."
    )
    if not is_diagonally_dominant(confusion):
        click.echo(
            "Note: some class is reported more often for another class than for itself (the mean "
            "matrix is not diagonally dominant), so that labels do not identify the true classes."
        )
    folder = shlex.quote(str(out))
    click.echo(f"Wrote {out}: {', '.join(FILES)}.")
    click.echo(
        f"Next: annotrace fit {folder}/labels.csv --features {folder}/features.npz --out run"
    )
