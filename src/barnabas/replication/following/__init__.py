"""The follower's side of replication: fetching partitions from the brokers that lead them."""
