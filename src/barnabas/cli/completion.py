"""`barnabas completion`: a script with which a shell completes the commands and their options."""

import argparse
from collections.abc import Callable

DESCRIPTION = "Print a script that completes commands and options of `barnabas` in your shell."
EXAMPLES = """\
  source <(barnabas completion bash)                  for this shell; put the line into ~/.bashrc to keep it
  barnabas completion zsh > ~/.zfunc/_barnabas        with ~/.zfunc in fpath
  barnabas completion fish > ~/.config/fish/completions/barnabas.fish
"""

BASH = """\
_barnabas() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" candidates=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        candidates="{commands} --help --version"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$candidates" -- "$word"))
    [ "${{#COMPREPLY[@]}}" -eq 0 ] && [[ "$word" != -* ]] && COMPREPLY=($(compgen -f -- "$word"))
}}
complete -F _barnabas barnabas
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(SHELLS), help="your shell")


def run(options: argparse.Namespace) -> int:
    print(SHELLS[options.shell](_options_by_command()), end="")
    return 0


def _options_by_command() -> dict[str, list[str]]:
    from barnabas.cli.main import COMMANDS, parser_of

    return {name: sorted(_flags(parser_of(name))) for name in COMMANDS}


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a command, and its subcommands with their options."""
    flags: set[str] = set()
    for action in parser._actions:
        flags.update(flag for flag in action.option_strings if flag.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for verb, verb_parser in action.choices.items():
                flags |= {verb, *_flags(verb_parser)}
    return flags


def _bash(commands: dict[str, list[str]]) -> str:
    cases = "\n".join(
        f'            {name}) candidates="{" ".join(flags)}" ;;' for name, flags in commands.items()
    )
    return BASH.format(commands=" ".join(commands), cases=cases)


def _zsh(commands: dict[str, list[str]]) -> str:
    return "#compdef barnabas\nautoload -U +X bashcompinit && bashcompinit\n" + _bash(commands)


def _fish(commands: dict[str, list[str]]) -> str:
    lines = [f"complete -c barnabas -f -n __fish_use_subcommand -a '{' '.join(commands)}'"]
    for name, flags in commands.items():
        for flag in flags:
            word = f"-l {flag[2:]}" if flag.startswith("--") else f"-a {flag}"
            lines.append(f"complete -c barnabas -n '__fish_seen_subcommand_from {name}' {word}")
    return "\n".join(lines) + "\n"


SHELLS: dict[str, Callable[[dict[str, list[str]]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
