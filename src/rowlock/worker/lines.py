"""Lines: the log goes on whatever the app's logging configuration does when it is applied."""

from __future__ import annotations

import logging


def keep_talking() -> None:
    """Take back what `disable_existing_loggers`, which is on by default, did to our loggers: a worker is never silent.

    To hear less of Rowlock, set the level of the logger "rowlock".
    """
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] == "rowlock" and isinstance(logger, logging.Logger):
            logger.disabled = False
