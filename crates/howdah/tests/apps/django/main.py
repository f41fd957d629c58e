"""A Django application as it is written for PostgreSQL itself: migrations, and requests on many threads at once.

It prints what it found; every line is the same whenever all went well.
"""

import datetime
import os
import sys
import threading
from collections import Counter as Tally

import django
from django.conf import settings
from django.core.management import call_command

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
CLIENTS = int(os.environ["APP_CLIENTS"])
ROUNDS = 6
DATABASE = {
    "ENGINE": "django.db.backends.postgresql",
    "HOST": os.environ["PGHOST"],
    "PORT": os.environ["PGPORT"],
    "NAME": os.environ["PGDATABASE"],
    "USER": os.environ["PGUSER"],
    # Connections stay with their threads, as in a server with threads.
    "CONN_MAX_AGE": None,
    "OPTIONS": {"application_name": "django"},
}
settings.configure(
    DATABASES={"default": DATABASE},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "library"],
    USE_TZ=True,
    TIME_ZONE="Europe/Paris",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import IntegrityError, connection, transaction  # noqa: E402
from django.db.models import Count, F, Sum  # noqa: E402
from django.db.models.functions import ExtractHour  # noqa: E402
from library.models import Account, Author, Book, Counter  # noqa: E402

tally = Tally()
guard = threading.Lock()


def note(what, count=1):
    with guard:
        tally[what] += count


def one(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone()[0] if cursor.description else None


def add_books(me, turn):
    """A transaction with savepoints, one of which fails."""
    with transaction.atomic():
        author, _ = Author.objects.get_or_create(name=f"author {me}")
        at = datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.timezone.utc)
        for n in range(5):
            with transaction.atomic():
                Book.objects.create(
                    author=author, title=f"{turn} {n}", tags=["a", str(n)], facts={"n": n}, added=at
                )
        try:
            with transaction.atomic():
                Book.objects.create(author=author, title=f"{turn} 0", added=at)
        except IntegrityError:
            note("refused doubles")


def transfer(me, turn):
    a, b = (me + turn) % 20, (me * 7 + turn + 1) % 20
    if a == b:
        return
    with transaction.atomic():
        rows = {
            row.number: row
            for row in Account.objects.select_for_update().filter(number__in=[a, b]).order_by("number")
        }
        rows[a].balance -= 1
        rows[b].balance += 1
        rows[a].save(update_fields=["balance"])
        rows[b].save(update_fields=["balance"])
    note("transfers")


def read_in_chunks(me):
    """Server-side cursors: WITH HOLD outside a transaction."""
    mine = Book.objects.filter(author__name=f"author {me}").order_by("id")
    outside = [book.title for book in mine.iterator(chunk_size=3)]
    with transaction.atomic():
        inside = [book.title for book in mine.iterator(chunk_size=4)]
    if outside != inside or not outside:
        note("wrong chunks")
    note("rows read in chunks", len(outside))


def count_under_a_lock():
    one("select pg_advisory_lock(%s)", 4711)
    try:
        counter = Counter.objects.get()
        counter.value += 1
        counter.save()
    finally:
        if not one("select pg_advisory_unlock(%s)", 4711):
            note("lost locks")


def keep_settings(me, turn):
    one(f"set statement_timeout = {100001 + me}")
    one("select set_config(%s, %s, false)", "library.reader", str(me))
    for _ in range(2):
        seen = one("show statement_timeout"), one("select current_setting('library.reader')")
        if seen != (f"{100001 + me}ms", str(me)):
            note(f"lost settings {seen}")
    zone = one("show timezone")
    if zone != "UTC" and zone != "Europe/Paris":
        note(f"wrong zone {zone}")
    if turn == ROUNDS - 1:
        one("reset statement_timeout")
        if one("show statement_timeout") != "0":
            note("not reset")


def use_a_temporary_table(me):
    one("create temp table scratch (n int)")
    one("insert into scratch select generate_series(1, %s)", me + 1)
    if one("select count(*) from scratch") != me + 1:
        note("wrong scratch")
    one("drop table scratch")


def ask(me):
    busy = Author.objects.annotate(count=Count("books")).filter(name=f"author {me}").get()
    hours = set(
        Book.objects.filter(author=busy).annotate(hour=ExtractHour("added")).values_list("hour", flat=True)
    )
    if hours != {13}:
        note(f"wrong hours {hours}")
    note("tagged", Book.objects.filter(author=busy, tags__contains=["a"], facts__n__gte=3).count())


def client(me, start):
    try:
        start.wait()
        for turn in range(ROUNDS):
            add_books(me, turn)
            transfer(me, turn)
            read_in_chunks(me)
            count_under_a_lock()
            keep_settings(me, turn)
            ask(me)
            if (me + turn) % 5 == 0:
                use_a_temporary_table(me)
            if turn == 3:
                connection.close()
    except Exception as error:  # what it was is the answer
        note(f"{type(error).__name__}: {error}")
    finally:
        connection.close()


call_command("migrate", verbosity=0)
call_command("migrate", "library", "0001", verbosity=0)
call_command("migrate", verbosity=0)
connection.close()
start = threading.Barrier(CLIENTS)
threads = [threading.Thread(target=client, args=(me, start)) for me in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("accounts", Account.objects.aggregate(sum=Sum("balance"))["sum"])
print("balances", list(Account.objects.order_by("number").values_list("balance", flat=True)))
print("books", Book.objects.count(), "authors", Author.objects.count())
print("counted", Counter.objects.get().value)
Account.objects.update(balance=F("balance") + 1)
print("after an update", Account.objects.aggregate(sum=Sum("balance"))["sum"])
for what in sorted(tally):
    print(what, tally[what])
