"""The web console: an HTTP API over the clients of this package, and a page that uses it.

`barnabas console` starts it. It needs barnabas[console]. It uses only what any Kafka client may use, so it
works with Apache Kafka too."""
