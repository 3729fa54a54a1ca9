"""Decoding values into columns: JSON and Avro, and what happens to values that cannot be decoded."""
