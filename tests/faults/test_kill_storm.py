"""Workers are killed with SIGKILL, one after the other, and what they held is done by others."""

from __future__ import annotations

import random
import threading
from typing import Any

from rowlock import Call
from tests.depth import deep
from tests.faults import tasks
from tests.faults.stage import Stage

pytestmark = deep

KILLS = 200
WORKERS = 4
SHORT, LONG = 4_000, 120
# A worker lives for half a second on average: whatever takes longer is killed with it more often than not.
LONGEST = 0.4
PAUSES = (0.05, 0.2)


def test_no_job_is_lost_or_settled_twice_while_workers_are_killed(stage: Stage) -> None:
    # given thousands of jobs, and four workers
    chance = stage.trial.random
    stage.sender.send_many(SHORT + LONG, lambda n: a_call(n, chance))
    stage.crew.start(WORKERS)

    # when one after the other is killed and replaced, while more jobs come in
    pause = threading.Event()
    with stage.sender.sending(lambda n: a_call(n, chance)):
        for _ in range(KILLS):
            pause.wait(chance.uniform(*PAUSES))
            chance.choice(stage.crew.living()).kill()
            stage.crew.start()

    # then all of them end, each once, and every crash is that of a worker which was killed
    stage.trial.count(kills=KILLS)
    with stage.look() as db:
        verdict = stage.all_is_well(db)
    assert verdict.counts["rescues"] > 0


def a_call(n: int, chance: random.Random) -> Call[Any]:
    """A short one, mostly; async and sync alike."""
    if n % ((SHORT + LONG) // LONG):
        return (tasks.touch if n % 2 else tasks.touch_in_a_thread).bind(n)
    return (tasks.linger if chance.random() < 0.5 else tasks.linger_in_a_thread).bind(n, chance.uniform(0.05, LONGEST))
