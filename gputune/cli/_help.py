"""The classes of every verb and group of verbs: their help is gputune's own, the same in every release of typer.

They are imported by every start, and so leave what makes the text to a module that only a help waits for.
"""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _Page:
    """What verbs and groups have in common. A context is typer's, of one of two classes by its release."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from gputune.cli import _help_text

        formatter.write(_help_text.text(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc, no-any-return]
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # the parser does not say whose words these are
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


class Command(_Page, TyperCommand):
    """A verb."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True  # for a line of gputune's own
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            from gputune.cli import _mistakes

            raise _mistakes.one_too_many(rest[0], ctx)
        return rest


class Group(_Page, TyperGroup):
    """gputune, or a verb with subcommands. Without any word it shows its help, and exits as for wrong usage."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            from gputune.host.stderr import show

            show(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs in the order in which a user meets them."""
        from gputune.cli import _pages

        order = list(_pages.PAGES)
        path = _pages.path(ctx)
        return sorted(self.commands, key=lambda verb: order.index(f"{path} {verb}".strip()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            from gputune.cli import _mistakes

            raise _mistakes.no_such_command(args[0], self.commands, ctx.command_path)
        return super().resolve_command(ctx, args)
