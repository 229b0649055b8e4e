"""The command line. Only typer is loaded here; each command loads what it needs, so that `--help` is quick.

Exit codes: 0 done, 1 a check failed, 2 usage or configuration, 3 incomplete, 4 model unusable. Standard output is for
data, standard error for everything else; a user's mistake is one line there.
"""

import difflib
import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from longreach.harness.commands.check import add_check_command
from longreach.harness.commands.exchange import add_exchange_commands
from longreach.harness.commands.find import add_find_command
from longreach.harness.commands.folder import add_folder_commands
from longreach.harness.commands.lists import add_list_commands
from longreach.harness.commands.run import add_run_commands
from longreach.harness.commands.samples import add_sample_commands
from longreach.harness.commands.tables import add_table_commands
from longreach.harness.commands.verdicts import add_verdict_commands
from longreach.harness.errors import LongreachError

# typer carries a click of its own in some versions and uses the package in others; both hang under this class.
_UsageError: Any = typer.BadParameter.__mro__[2]
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What an output that takes no more answers."""


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
    app.callback()(_options)
    add_run_commands(app)
    add_find_command(app)
    add_sample_commands(app)
    add_folder_commands(app)
    add_verdict_commands(app)
    add_table_commands(app)
    add_list_commands(app)
    add_check_command(app)
    add_exchange_commands(app)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"longreach {version('longreach')}")
        raise typer.Exit()


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """What stands before a command; typer reads the parameters."""


def normalise(arguments: list[str]) -> list[str]:
    """Option names with hyphens, however they were typed: `--base_url=a_b` becomes `--base-url=a_b`."""
    found: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return found + arguments[position:]
        if argument.startswith("--"):
            name, sign, value = argument.partition("=")
            argument = name.replace("_", "-") + sign + value
        found.append(argument)
    return found


def main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point of the `longreach` command; always leaves by SystemExit."""
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code; a user's mistake is one line on standard error."""
    try:
        code = make_app()(args=normalise(arguments), prog_name="longreach", standalone_mode=False)
        sys.stdout.flush()
    except LongreachError as error:
        return _fail(str(error), error.exit_code, _named_keys(arguments))
    except _UsageError as error:
        message = _usage_message(error)  # empty after `longreach` alone, which has printed the help
        return _fail(message, 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130)
    except SystemExit as leaving:
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return _unheard()  # click makes an exit code of it that means something else here
    except BrokenPipeError:
        return _unheard()
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        _silence()
        return _fail(f"output cannot be written: {error.strerror}; make room, or write elsewhere", 2)
    return code if isinstance(code, int) else 0


def _usage_message(error: Any) -> str:
    """One line; an unknown option with the nearest one, if one is near."""
    message, context = str(error.format_message()), error.ctx
    if not message:
        return ""
    command = context.command_path if context is not None else "longreach"
    name = getattr(error, "option_name", "")
    if name and hasattr(error, "possibilities") and context is not None:
        known = [flag.lstrip("-") for item in context.command.params for flag in item.opts]
        near = difflib.get_close_matches(name.lstrip("-"), known, n=1, cutoff=0.7)
        message = f"No such option: {name}" + (f"; did you mean '--{near[0]}'?" if near else "")
    return f"{message} (see `{command} --help`)"


def _unheard() -> int:
    """`longreach show ... | head`: nobody listens any more. What a gate would have said is not known: not 0, not 1."""
    _silence()
    return 141  # 128 + SIGPIPE, as a shell says it


def _silence() -> None:
    """What is still in the buffer goes nowhere: the interpreter must not try to flush it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


def _named_keys(arguments: list[str]) -> list[str]:
    """Keys whose variables the command line names (`--model-args api_key_env=NAME`)."""
    names = re.findall(r"\bapi_key_env=([^\s,]+)", " ".join(arguments))
    return [os.environ[name] for name in names if os.environ.get(name)]


def _fail(message: str, code: int, keys: Sequence[str] = ()) -> int:
    from longreach.harness.running.redact import keys_around, without

    text = without(" ".join(message.split()), [*keys, *keys_around()])
    if text:
        typer.echo(f"longreach: {text}", err=True)
    return code
