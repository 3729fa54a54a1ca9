"""Decoding values into columns: JSON, CSV, Avro, Protobuf and Debezium's envelopes, and what happens to
values that cannot be decoded."""
