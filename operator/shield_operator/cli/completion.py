"""``kubectl shield completion``, and what kubectl itself calls to complete a plugin's arguments."""

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

_PROGRAM: Final = "kubectl-shield"
_VARIABLE: Final = "_KUBECTL_SHIELD_COMPLETE"

_NO_FILES: Final = 4
_FILES: Final = 0
_FOLDERS: Final = 16
"""What a shell is to do besides, as kubectl (Cobra) numbers it: ``ShellCompDirective``."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes the arguments of kubectl-shield.

    For "kubectl shield" itself there is nothing to do but to have kubectl's own completion:
    kubectl (1.26 or later) calls the program kubectl_complete-shield, which is installed beside
    this one; both must be on the PATH.

    \b
    Examples:
      source <(kubectl shield completion bash)
      kubectl shield completion zsh > "${fpath[1]}/_kubectl-shield"
      kubectl shield completion fish > ~/.config/fish/completions/kubectl-shield.fish
    """  # noqa: D301  # click's mark for lines to be kept
    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101  # one of the choices
    plugin = context.find_root().command
    click.echo(kind(plugin, {}, _PROGRAM, _VARIABLE).source())


def complete_for_kubectl(plugin: click.Command) -> None:
    """Answer kubectl: a candidate a line with its help, then what the shell is to do besides.

    https://kubernetes.io/docs/reference/kubectl/generated/kubectl_plugin/
    """
    *before, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(plugin, {}, _PROGRAM, _VARIABLE).get_completions(before, incomplete)
    directive = _NO_FILES
    for item in found:
        if item.type == "file":
            directive = _FILES
        elif item.type == "dir":
            directive = _FOLDERS
        else:
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{directive}")
