"""The Spark data source `barnabas`: topics as DataFrames, batch and streaming, without a jar.

spark.read.format("barnabas").option("kafka.bootstrap.servers", ...).option("subscribe", "orders").load()

Speaks to brokers through barnabas.client. Nothing is imported here: Spark imports the source to find it."""
