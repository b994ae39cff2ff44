"""`annotrace connect`: one command per labelling tool."""

from __future__ import annotations

from typing import Any

import click

from annotrace.cli.connect_items import task_image_options
from annotrace.cli.connect_loop import read_secret, run_loop
from annotrace.cli.connect_options import (
    loop_options,
    read_options,
    refused_option,
    write_options,
)

TOKENS = ("ANNOTRACE_LABEL_STUDIO_TOKEN", "LABEL_STUDIO_API_KEY")
PASSWORDS = ("ANNOTRACE_DOCCANO_PASSWORD",)


@click.group(short_help="Exchange labels and predictions with a labelling tool.")
def connect() -> None:
    """Estimate true classes from the answers in a labelling tool, and write back what helps.

    \b
    Examples:
      annotrace connect label-studio http://localhost:8080 --project 1 --out run
      annotrace connect doccano http://localhost:8000 --project 1 --user admin --out run
    """


@connect.command("label-studio", short_help="Label Studio, community edition 1.23.")
@read_options
@click.option(
    "--question", metavar="NAME", help="The control whose answers are the labels, if several are."
)
@click.option(
    "--repeats",
    type=click.Choice(["keep", "first", "last", "error"]),
    default="keep",
    show_default=True,
    help="What to do if an annotator answered a task more than once.",
)
@task_image_options
@write_options
@loop_options
def label_studio(
    url: str,
    project: int,
    question: str | None,
    item: str | None,
    skip: tuple[str, ...],
    repeats: Any,
    **options: Any,
) -> None:
    """Read the answers of a project in Label Studio, estimate the true classes, and close the loop.

    URL is the address of the server. The access token is read from ANNOTRACE_LABEL_STUDIO_TOKEN or
    LABEL_STUDIO_API_KEY, or asked for. RUN becomes a folder as `annotrace aggregate` writes it, or
    with --text or --image as `annotrace fit` does. Annotations that are marked as ground truth are
    gold items.

    --push adds the estimated classes as predictions, with their confidence as score; annotrace's
    earlier ones are deleted, those of other models stay. --queue makes one tab per annotator with
    the tasks whose label is expected to gain most; in it, choose "Label Tasks As Displayed".

    \b
    Examples:
      annotrace connect label-studio http://localhost:8080 --project 1 --out run
      annotrace connect label-studio http://localhost:8080 --project 1 --out run \\
          --overwrite --push --queue
      annotrace connect label-studio http://localhost:8080 --project 1 --out run \\
          --text review --push --queue --watch --cost .05
      annotrace connect label-studio http://localhost:8080 --project 1 --out run \\
          --image photo --encoder facebook/dinov2-small --push
    """
    from annotrace.connect import LabelStudio
    from annotrace.labels.building import TableOptions

    table = TableOptions(skip=skip, repeats=repeats)
    token = read_secret("token", "Label Studio", TOKENS, url)
    tool = LabelStudio(url, project, token, question=question, item=item, options=table)
    run_loop(tool, **options)


@connect.command("doccano", short_help="doccano 1.8: labels are read, nothing is written back.")
@click.option(
    "--user", metavar="NAME", required=True, help="User name of an administrator of the project."
)
@read_options
@loop_options
@refused_option("--push", "doccano stores no predictions with scores", is_flag=True)
@refused_option("--queue", "doccano 1.8 assigns no examples to annotators", is_flag=True)
@refused_option("--listen", "doccano calls no webhooks")
def doccano(
    url: str, project: int, user: str, item: str | None, skip: tuple[str, ...], **options: Any
) -> None:
    """Read the labels of all members of a project in doccano, and estimate the true classes.

    URL is the address of the server. The password of --user is read from
    ANNOTRACE_DOCCANO_PASSWORD, or asked for. RUN becomes a folder as `annotrace aggregate` writes
    it, or with --text as `annotrace fit` does; `--text text` is the text of the examples.

    doccano has no place for predictions, queues and ground truth. `annotrace next RUN` lists who
    should label what next.

    \b
    Examples:
      annotrace connect doccano http://localhost:8000 --project 1 --user admin --out run
      annotrace connect doccano http://localhost:8000 --project 1 --user admin --out run \\
          --text text --watch
    """
    from annotrace.connect import Doccano

    password = read_secret("password", f"{user} in doccano", PASSWORDS, url)
    run_loop(Doccano(url, project, user, password, item=item, skip=skip), **options)
