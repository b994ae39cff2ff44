"""Thirty csv files with columns as people name them, in four languages.

usage: python tests/labels/column_files.py FOLDER    writes the files

Twelve vocabularies name the columns and their values. A design says how many items and annotators
there are, who labels what, and how often annotators are right. Further columns describe items,
annotators or rows, as they do in real files. Everything is drawn from the number of the file.
"""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

N_FILES = 30
NAMES = [
    *("anna", "ben", "carla", "dario", "elif", "frank", "gina", "hugo"),
    *("ines", "jonas", "kim", "lena", "mara", "nils", "olga", "paul"),
]


@dataclass(frozen=True)
class Vocabulary:
    """Names of columns, how items and annotators are written, and the classes."""

    item: str
    annotator: str
    label: str
    items: str
    annotators: str
    classes: str
    others: dict[str, str]


@dataclass(frozen=True)
class Design:
    """Sizes of a crowd; `per_item` is 0 if every annotator labels every item."""

    n_items: int
    n_annotators: int
    n_classes: int
    per_item: int
    accuracy: float = 0.8
    extras: str = ""


@dataclass(frozen=True)
class ColumnFile:
    """A csv file, its columns by role, and those that are one-to-one with a role."""

    name: str
    text: str
    roles: dict[str, str]
    equals: dict[str, set[str]] = field(default_factory=dict)


ENGLISH = {
    **{"when": "saved", "seconds": "took", "comment": "hint", "url": "link", "text": "caption"},
    **{"row": "no", "constant": "project", "score": "certain", "grade": "sure", "truth": "really"},
    **{"batch": "shift", "name": "full name", "email": "mail", "group": "team", "topic": "kind"},
}
GERMAN = {
    **{"when": "gespeichert", "seconds": "dauer", "comment": "kommentar", "url": "adresse"},
    **{"text": "beschreibung", "row": "nr", "constant": "projekt", "score": "gewissheit"},
    **{"grade": "sicherheit", "truth": "tatsächlich", "batch": "los", "name": "vollname"},
    **{"email": "post", "group": "abteilung", "topic": "bereich"},
}
FRENCH = {
    **{"when": "enregistré", "seconds": "durée", "comment": "commentaire", "url": "lien"},
    **{"text": "légende", "row": "no", "constant": "projet", "score": "certitude"},
    **{"grade": "assurance", "truth": "réel", "batch": "lot", "name": "nom complet"},
    **{"email": "courriel", "group": "équipe", "topic": "domaine"},
}
SPANISH = {
    **{"when": "guardado", "seconds": "duración", "comment": "comentario", "url": "enlace"},
    **{"text": "descripción", "row": "núm", "constant": "proyecto", "score": "confianza"},
    **{"grade": "seguridad", "truth": "real", "batch": "lote", "name": "nombre completo"},
    **{"email": "correo", "group": "equipo", "topic": "tema"},
}
VOCABULARIES = [
    Vocabulary("snapshot", "who", "animal", "IMG_{:04}.jpg", "name", "cat dog hen fox", ENGLISH),
    Vocabulary("clip", "listener", "heard", "clip-{:03}", "L{:02}", "speech music noise", ENGLISH),
    Vocabulary("ticket", "agent", "urgency", "{}", "{}", "1 2 3 4", ENGLISH),
    Vocabulary("aufnahme", "wer", "tier", "A{:04}", "name", "katze hund huhn fuchs", GERMAN),
    Vocabulary("satz", "leserin", "ton", "Das ist Satz {} von vielen im Text.", "p{}", "", GERMAN),
    Vocabulary("befund", "arzt", "stufe", "{}", "{}", "0 1 2 3 4", GERMAN),
    Vocabulary("cliché", "qui", "espèce", "cliche_{}.png", "name", "chat chien poule", FRENCH),
    Vocabulary("phrase", "relecteur", "ton", "ph{:05}", "R{}", "neutre joyeux triste", FRENCH),
    Vocabulary("dossier", "médecin", "grade", "{}", "{}", "1 2", FRENCH),
    Vocabulary("toma", "quién", "animal", "toma {}", "name", "gato perro zorro", SPANISH),
    Vocabulary("frase", "revisora", "tono", "f-{}", "rev{}", "neutro alegre triste", SPANISH),
    Vocabulary("informe", "médico", "grado", "{}", "{}", "0 1 2", SPANISH),
]
DESIGNS = [
    Design(200, 8, 3, 3, extras="when row comment"),
    Design(60, 5, 2, 0, 0.9, "url truth constant"),
    Design(300, 12, 4, 3, 0.75, "batch seconds"),
    Design(150, 6, 3, 4, 0.85, "text topic when"),
    Design(80, 10, 5, 0, 0.7, "group email"),
    Design(400, 9, 4, 2, 0.9, "score row"),
    Design(120, 15, 3, 5, 0.8, "truth topic url"),
    Design(250, 6, 10, 3, 0.85, "name when"),
    Design(100, 2, 2, 0, 0.95, "text constant"),
    Design(20, 60, 3, 0, 0.85, "when"),
    Design(300, 10, 3, 1, 0.8, "row"),
    Design(90, 1, 3, 1, 0.8, "when url"),
    Design(1000, 40, 25, 5, 0.8, "batch truth seconds"),
    Design(150, 30, 4, 8, 0.65, "group comment row"),
    Design(200, 7, 3, 3, 0.8, "grade when"),
    Design(500, 16, 4, 3, 0.8, "url text name group truth"),
    Design(60, 4, 2, 0, 0.85, "row when score"),
    Design(240, 11, 6, 3, 0.8),
]


def make_files() -> list[ColumnFile]:
    """Make all files, the same ones every time."""
    return [make_file(number) for number in range(N_FILES)]


def make_file(number: int) -> ColumnFile:
    """Make one file: vocabularies and designs are combined in turn."""
    words = VOCABULARIES[number % len(VOCABULARIES)]
    design = DESIGNS[(5 * number + number // len(DESIGNS)) % len(DESIGNS)]
    rng = np.random.default_rng(number)
    item, annotator, label, truth = draw_labels(design, rng)
    names = value_names(words, design, rng)
    columns = {
        words.item: names["item"][item],
        words.annotator: names["annotator"][annotator],
        words.label: names["label"][label],
    }
    extras = further_columns(design, rng, item, annotator, names["label"][truth])
    columns |= {words.others[kind]: extras[kind] for kind in design.extras.split()}
    roles = dict(zip(("item", "annotator", "label"), columns, strict=False))
    equals = {
        "item": {words.others["url"], words.others["text"]},
        "annotator": {words.others["name"], words.others["email"]},
    }
    return ColumnFile(f"{number:02}.csv", write_csv(columns, rng), roles, equals)


def draw_labels(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Draw who labels what, the labels, and the true class of each item."""
    n_items, n_annotators = design.n_items, design.n_annotators
    count = design.per_item or n_annotators
    chosen = [rng.choice(n_annotators, count, replace=False) for _ in range(n_items)]
    item, annotator = np.repeat(np.arange(n_items), count), np.concatenate(chosen)
    truth = rng.integers(0, design.n_classes, n_items)
    skill = np.clip(rng.normal(design.accuracy, 0.08, n_annotators), 0.3, 1)
    is_right = rng.random(len(item)) < skill[annotator]
    guess = rng.integers(0, design.n_classes, len(item))
    return item, annotator, np.where(is_right, truth[item], guess), truth


def value_names(words: Vocabulary, design: Design, rng: np.random.Generator) -> dict:
    """Name items, annotators and classes; numbers of items and annotators overlap."""
    items = [words.items.format(k + 1) for k in rng.permutation(design.n_items)]
    people = [f"{NAMES[k % len(NAMES)]}{k // len(NAMES) or ''}" for k in range(200)]
    form = words.annotators
    annotators = people if form == "name" else [form.format(k + 1) for k in range(200)]
    classes = words.classes.split() + [f"{words.label} {k}" for k in range(design.n_classes)]
    if all(name.isdigit() for name in words.classes.split()):
        classes = [str(k + 1) for k in range(design.n_classes)]
    named = {"item": items, "annotator": annotators, "label": classes[: design.n_classes]}
    return {role: np.array(values, dtype=object) for role, values in named.items()}


def further_columns(
    design: Design,
    rng: np.random.Generator,
    item: np.ndarray,
    annotator: np.ndarray,
    truth: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return every further column of a file by its kind."""
    n_rows, n_items, n_annotators = len(item), design.n_items, design.n_annotators
    minutes = rng.integers(0, 60 * 24 * 20, n_rows)
    row = rng.permutation(n_rows)
    columns = {
        "when": [f"2024-05-{1 + m // 1440:02} {m // 60 % 24:02}:{m % 60:02}" for m in minutes],
        "seconds": rng.lognormal(3, 0.6, n_rows).astype(int),
        "comment": np.where(rng.random(n_rows) < 0.1, "?", ""),
        "url": np.array([f"https://example.org/{k}" for k in range(n_items)])[item],
        "text": np.array([f"number {k} seen from very far away" for k in range(n_items)])[item],
        "row": row + 1,
        "constant": ["pilot"] * n_rows,
        "score": rng.random(n_rows).round(2),
        "grade": rng.integers(1, 6, n_rows),
        "truth": np.where(rng.random(n_items) < 0.7, truth, "")[item],
        "batch": item // 20,
        "name": np.array([f"Dr. {NAMES[k % 16].title()} {k}" for k in range(n_annotators)])[
            annotator
        ],
        "email": np.array([f"a{k}@example.org" for k in range(n_annotators)])[annotator],
        "group": np.array(["north", "south"])[rng.integers(0, 2, n_annotators)][annotator],
        "topic": np.array(["one", "two", "three"])[rng.integers(0, 3, n_items)][item],
    }
    return {kind: np.array(values, dtype=object) for kind, values in columns.items()}


def write_csv(columns: dict[str, np.ndarray], rng: np.random.Generator) -> str:
    """Write columns in random order, and rows in random order every other time."""
    names = list(columns)
    rng.shuffle(names)
    n_rows = len(columns[names[0]])
    order = rng.permutation(n_rows) if rng.random() < 0.5 else np.arange(n_rows)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(columns[name][order] for name in names), strict=True))
    return file.getvalue()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for file in make_files():
        (folder / file.name).write_text(file.text, encoding="utf-8")
