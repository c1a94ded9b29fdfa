"""The outcome of each setting in a program's models: one row for all of them."""

from collections.abc import Iterable

from .applied import Applied, Reason, Why

PROVISIONAL = (Reason.NO_STEP, Reason.FEW_CALLS, Reason.NO_MODEL, Reason.MANY_MODELS, Reason.OTHER_MODELS)
"""Reasons of a row that stands only as long as nothing is known of any model."""


class Outcome:
    """Rows by setting. Those that are `expected` are there from the start."""

    def __init__(self, expected: Iterable[str], why: Why) -> None:
        """`why` is why nothing was put in as long as nothing is known of any model."""
        self._expected, self._why = tuple(expected), why
        self.rows = {name: left(name, why) for name in self._expected}

    def begin_again(self) -> None:
        """Forget what became of the expected settings, after they were taken out of the program again."""
        self.rows.update({name: left(name, self._why) for name in self._expected})

    def nothing(self, why: Why) -> None:
        """Why nothing was put in, where nothing is known of any model so far."""
        provisional = [name for name, row in self.rows.items() if row.because(*PROVISIONAL) is not None]
        self.rows.update({name: left(name, why) for name in provisional})

    def settle(self) -> None:
        """Models are known by now: what is not for their kinds has no row any more."""
        self.rows = {name: row for name, row in self.rows.items() if row.because(*PROVISIONAL) is None}

    def add(self, row: Applied) -> None:
        """Where models have different rows of a setting, it is applied if it is in one, and all reasons are kept."""
        before = self.rows.get(row.setting)
        if before is not None and before.because(*PROVISIONAL) is None:
            row = _merged(before, row)
        self.rows[row.setting] = row

    def replace(self, row: Applied) -> None:
        self.rows[row.setting] = row


def left(name: str, why: Why, users: bool = False) -> Applied:
    """The row of a setting that was not put in, because the program does it itself if `users`."""
    if users:
        return Applied(setting=name, status="kept-user", source="program", reasons=(why,))
    return Applied(setting=name, status="skipped", source="torch", reasons=(why,))


def _merged(before: Applied, row: Applied) -> Applied:
    first, second = (row, before) if row.status == "applied" != before.status else (before, row)
    reasons = (*first.reasons, *second.reasons)
    models = dict.fromkeys(name for why in reasons if why.reason is Reason.PUT_IN for name in why.arguments)
    others = dict.fromkeys(why for why in reasons if why.reason is not Reason.PUT_IN)
    return Applied(
        setting=row.setting,
        after=first.after,
        status=first.status,
        source=first.source,
        reasons=(*([Reason.PUT_IN(*models)] if models else []), *others),
    )
