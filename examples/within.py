"""Within: every enqueue in a block joins its transaction, also those of code that knows nothing of it."""

import os

import psycopg

from rowlock import Rowlock

app = Rowlock()


@app.task
def confirm(order: int) -> None:
    print(f"order {order} confirmed")


def place(order: int) -> None:
    """Somebody else's function: no connection in sight."""
    confirm.enqueue(order)


def main() -> None:
    with app, psycopg.connect(os.environ["ROWLOCK_URL"]) as connection:
        with app.within(connection):
            place(1)
            connection.rollback()
            place(2)
            with app.within(None):  # on a connection of Rowlock's own: at once, whatever becomes of ours
                place(3)
            print("others see:", orders())
        connection.commit()
        print("and after the commit:", orders())


def orders() -> list[int]:
    return sorted(job.args["order"] for job in app.jobs.list().records)


if __name__ == "__main__":
    main()
