"""The command line. Only typer is loaded here; each command loads what it needs, so that `--help` is quick.

Exit codes: 0 done, 1 a check failed, 2 usage or configuration, 3 incomplete, 4 model unusable. Standard output is for
data, standard error for everything else; a user's mistake is one line there.
"""

import sys
from typing import NoReturn

import typer

from longreach.harness.cli_folder import add_folder_commands
from longreach.harness.cli_lists import add_list_commands
from longreach.harness.cli_run import add_run_commands
from longreach.harness.cli_samples import add_sample_commands
from longreach.harness.errors import LongreachError


def make_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="longreach",
        help="How much of a language model's context window is really usable, in numbers that hold up.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    add_run_commands(app)
    add_sample_commands(app)
    add_folder_commands(app)
    add_list_commands(app)
    return app


def normalise(arguments: list[str]) -> list[str]:
    """Option names with hyphens, however they were typed: `--base_url=a_b` becomes `--base-url=a_b`."""
    found = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return found + arguments[position:]
        if argument.startswith("--"):
            name, sign, value = argument.partition("=")
            argument = name.replace("_", "-") + sign + value
        found.append(argument)
    return found


def main() -> NoReturn:
    """Entry point of the `longreach` command."""
    try:
        make_app()(args=normalise(sys.argv[1:]), standalone_mode=True)
    except LongreachError as error:
        typer.echo(f"longreach: {' '.join(str(error).split())}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("longreach: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # `longreach show ... | head`: nobody listens any more
        sys.exit(0)
    sys.exit(0)
