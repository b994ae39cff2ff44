import click
from click.testing import CliRunner

from annotrace.cli.connect_options import refused_option


@click.command()
@refused_option("--push", "This tool stores nothing", is_flag=True)
def command():
    click.echo("done")


def test_an_option_of_other_tools_is_refused_with_the_reason():
    refused = CliRunner().invoke(command, ["--push"])
    assert refused.exit_code == 2
    assert "Error: This tool stores nothing: leave out --push." in refused.output


def test_it_is_not_listed_and_not_passed_on():
    assert "--push" not in CliRunner().invoke(command, ["--help"]).output
    assert CliRunner().invoke(command, []).output == "done\n"
