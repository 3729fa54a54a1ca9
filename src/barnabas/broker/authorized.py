"""The bit fields of operations a client may perform; without an authorizer that is all of them."""

# Kafka's numbers: READ 3, WRITE 4, CREATE 5, DELETE 6, ALTER 7, DESCRIBE 8, CLUSTER_ACTION 9,
# DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11, IDEMPOTENT_WRITE 12.
NOT_ASKED = -(2**31)
TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
