"""The consumer group protocol of KIP-848: members send heartbeats, the coordinator assigns partitions."""
