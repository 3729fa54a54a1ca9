"""Kafka's wire protocol: canonical messages, their codec, and the adapter between versions."""
