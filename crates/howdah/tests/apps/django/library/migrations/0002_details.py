import django.contrib.postgres.fields
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


def fill(apps, schema_editor):
    Account = apps.get_model("library", "Account")
    Account.objects.bulk_create([Account(number=n, balance=1000) for n in range(20)])
    apps.get_model("library", "Counter").objects.create(value=0)


def clear(apps, schema_editor):
    apps.get_model("library", "Account").objects.all().delete()
    apps.get_model("library", "Counter").objects.all().delete()


class Migration(migrations.Migration):
    # As AddIndexConcurrently needs it.
    atomic = False
    dependencies = [("library", "0001_initial")]
    operations = [
        migrations.AddField("Author", "born", models.DateField(null=True)),
        migrations.AddField(
            "Book",
            "tags",
            django.contrib.postgres.fields.ArrayField(models.CharField(max_length=20), default=list),
        ),
        migrations.AddField("Book", "facts", models.JSONField(default=dict)),
        migrations.AddField("Book", "added", models.DateTimeField()),
        migrations.AddConstraint(
            "Book", models.UniqueConstraint(fields=["author", "title"], name="one_title")
        ),
        AddIndexConcurrently("Book", models.Index(fields=["added"], name="by_time")),
        migrations.RunPython(fill, clear),
    ]
