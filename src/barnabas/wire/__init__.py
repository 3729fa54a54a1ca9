"""Kafka's wire protocol: messages, their codec, and the conversion between versions of some messages."""
