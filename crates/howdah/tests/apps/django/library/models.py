from django.contrib.postgres.fields import ArrayField
from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=100, unique=True)
    born = models.DateField(null=True)


class Book(models.Model):
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    title = models.CharField(max_length=200)
    tags = ArrayField(models.CharField(max_length=20), default=list)
    facts = models.JSONField(default=dict)
    added = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["author", "title"], name="one_title")]


class Account(models.Model):
    number = models.IntegerField(unique=True)
    balance = models.IntegerField()


class Counter(models.Model):
    value = models.IntegerField(default=0)
