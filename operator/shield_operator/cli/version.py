"""``kubectl shield version``."""

import click

from shield_operator import __version__


@click.command()
def version() -> None:
    """Print the plugin's version."""
    click.echo(f"kubectl shield {__version__}")
