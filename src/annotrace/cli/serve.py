"""`annotrace serve`: the report of a run, live in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from annotrace.cli.options import PATH, anonymous_option


@click.command(short_help="Show the report of a run in a browser, and each newer one.")
@click.argument("run", type=PATH)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. By default only this machine can reach it.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 for any that is free.",
)
@anonymous_option
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
def serve(run: Path, host: str, port: int, anonymous: bool, opens: bool) -> None:
    """Show the report of RUN in a browser, and each newer one as it is written.

    RUN is a folder that `annotrace fit`, `annotrace aggregate` or `annotrace connect` writes, now
    and again. The address has a random token: whoever has the address can see the report. Nothing
    can be changed through it, and the page loads nothing from elsewhere. Ctrl-C stops the server.

    \b
    Examples:
      annotrace serve run --open
      annotrace serve run --anonymous --port 8000
    """
    from annotrace.report.dashboard import Dashboard
    from annotrace.report.live_report import LiveReport

    with Dashboard(LiveReport(run, anonymous=anonymous), host, port) as dashboard:
        click.echo(f"Serving {run} at {dashboard.url} until Ctrl-C.")
        if not dashboard.is_local:
            click.echo(
                f"Warning: other machines can reach {host}, and the report travels unencrypted. "
                "Use a tunnel (ssh -L) or a proxy with TLS.",
                err=True,
            )
        if opens:
            click.launch(dashboard.url)
        try:
            dashboard.serve_forever()
        except KeyboardInterrupt:
            click.echo("Stopped.")
