"""Partitions of which this broker holds a replica, and waiting for their offsets."""
