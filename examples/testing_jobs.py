"""Testing: run due jobs here and now, and let a week go by, on a real database and without a worker."""

from datetime import timedelta

from rowlock import Rowlock
from rowlock.testing import assert_enqueued, assert_not_enqueued, drain, travel

app = Rowlock()


@app.task
def place(order: int) -> None:
    confirm.enqueue(order)
    remind.using(delay=timedelta(days=7)).enqueue(order)


@app.task
def confirm(order: int) -> str:
    return f"order {order} confirmed"


@app.task
def remind(order: int) -> str:
    return f"order {order}: time to pay"


def test_an_order() -> None:
    place.enqueue(7)

    drained = drain(app)

    assert [attempt.task for attempt in drained] == ["testing_jobs.place", "testing_jobs.confirm"]
    assert_enqueued(remind.bind(7), delay=timedelta(days=7))
    assert_not_enqueued(confirm)
    with travel(app, timedelta(days=7)):
        assert drain(app).succeeded == 1


if __name__ == "__main__":
    with app:  # as a rule pytest does this
        test_an_order()
        print("1 passed")
