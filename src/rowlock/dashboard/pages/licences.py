"""The page /licences: third-party parts of the dashboard and their licences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rowlock.app.masking import Verbatim
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.dashboard.render import STATIC


class LicencesParams(Params):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Licence:
    """A third-party part: its purpose, its source, its licence, and the licence's text."""

    part: str
    version: str
    purpose: str
    source: str
    licence: str
    text: str


@dataclass(frozen=True, slots=True)
class LicencesShown:
    """All licences."""

    parts: tuple[Licence, ...]


def _read(part: str, version: str, purpose: str, source: str, licence: str) -> Licence:
    text = (STATIC / f"licence-{part.lower()}.txt").read_text(encoding="utf-8")
    return Licence(part, version, purpose, source, licence, Verbatim(text))


LICENCES: Final = (
    _read("uPlot", "1.6.32", "charts", "https://github.com/leeoniya/uPlot", "MIT"),
    _read("idiomorph", "0.7.4", "live updates", "https://github.com/bigskysoftware/idiomorph", "0BSD"),
    _read("Inter", "4.1", "the font", "https://github.com/rsms/inter", "SIL OFL 1.1"),
)


async def load(_context: RequestContext, _params: LicencesParams) -> LicencesShown:
    """List the licences."""
    return LicencesShown(LICENCES)


PAGE = DashboardPage(
    "licences", "/licences", LicencesParams, LicencesShown, load, says="Licences of the parts that others have made."
)
