"""SASL mechanisms as state machines: bytes in, bytes out. The client's side and the server's."""
