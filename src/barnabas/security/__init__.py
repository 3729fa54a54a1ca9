"""Who somebody is and what they may do: principals, TLS, SASL, ACLs, quotas.

Values and algorithms only, for brokers and clients: no sockets, no event loop, no metadata."""
