"""A queue of jobs in PostgreSQL (procrastinate), as it is written for PostgreSQL itself: workers sleep until a NOTIFY
wakes them, and take jobs with SKIP LOCKED.

Nobody polls: a job that no notification announces is never done, and the run comes to no end.
"""

import asyncio
import os
import sys
from collections import Counter

import procrastinate

WORKERS = int(os.environ["APP_WORKERS"])
PRODUCERS = int(os.environ["APP_CLIENTS"])
EACH = 6
NEVER = 3600


def application(connections):
    conninfo = (
        f"host={os.environ['PGHOST']} port={os.environ['PGPORT']} user={os.environ['PGUSER']}"
        f" dbname={os.environ['PGDATABASE']} application_name=queue"
    )
    connector = procrastinate.PsycopgConnector(conninfo=conninfo, min_size=1, max_size=connections)
    return procrastinate.App(connector=connector)


done = Counter()
all_done = asyncio.Event()


async def produce(app, task, me):
    for n in range(EACH):
        await task.defer_async(me=me, n=n)


async def main():
    apps = [application(4) for _ in range(WORKERS)]
    producer = application(PRODUCERS)

    def declare(app):
        @app.task(name="work", queue="work")
        async def work(me, n):
            done[f"job {me} {n}"] += 1
            if sum(done.values()) >= PRODUCERS * EACH:
                all_done.set()

        return work

    async with producer.open_async():
        await producer.schema_manager.apply_schema_async()
    workers = []
    for app in apps:
        declare(app)
        await app.open_async()
        workers.append(
            asyncio.create_task(
                app.run_worker_async(
                    queues=["work"], concurrency=2, fetch_job_polling_interval=NEVER, install_signal_handlers=False
                )
            )
        )
    task = declare(producer)
    async with producer.open_async():
        await asyncio.gather(*(produce(producer, task, me) for me in range(PRODUCERS)))
        await all_done.wait()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for app in apps:
            await app.close_async()
        rows = await producer.connector.execute_query_all_async(
            "select status::text as status, count(*) as count from procrastinate_jobs group by 1 order by 1"
        )
    print("jobs", sum(done.values()), "of them different", len(done))
    print("twice", sorted(name for name, count in done.items() if count != 1))
    for row in rows:
        print(row["status"], row["count"])


asyncio.run(asyncio.wait_for(main(), float(os.environ.get("APP_SECONDS", "240"))))
sys.stdout.flush()
