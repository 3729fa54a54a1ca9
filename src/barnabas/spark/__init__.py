"""The Spark data source `barnabas`: topics as DataFrames, batch and streaming, without a jar.

spark.read.format("barnabas").option("kafka.bootstrap.servers", ...).option("subscribe", "orders").load()

It talks to brokers through barnabas.client. Nothing is imported here, so that Spark finds the source
quickly."""
