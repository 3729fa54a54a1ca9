"""What /metrics shows, in Prometheus' formats, under the names that Kafka's dashboards know.

One module per subject, each with a `collect(broker)` that reads the broker's own counters; `scrape.py` has
the list of them, `exposition.py` writes the text, `server.py` is the HTTP endpoint."""
