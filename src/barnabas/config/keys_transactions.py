"""Broker keys for transactions."""

from barnabas.config.definition import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LOW, SHORT, accepted, at_least, table

KEYS_TRANSACTIONS = table(
    accepted(INT, "transaction.max.timeout.ms", 900_000, at_least(1), HIGH),
    "Longest timeout a producer may ask for its transactions.",
    accepted(INT, "transactional.id.expiration.ms", 604_800_000, at_least(1), HIGH),
    "Time after which an unused transactional id is forgotten.",
    accepted(INT, "transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, at_least(1), LOW),
    "How often transactions past their timeout are looked for and aborted.",
    accepted(INT, "transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, at_least(1), LOW),
    "How often unused transactional ids are looked for.",
    accepted(BOOLEAN, "transaction.partition.verification.enable", True, None, LOW, CLUSTER_WIDE),
    "Whether a transactional write is checked with the coordinator before it is appended.",
    accepted(BOOLEAN, "transaction.two.phase.commit.enable", False, None, LOW),
    "Whether a producer may prepare a transaction and leave its end to an outside coordinator.",
    accepted(INT, "transaction.state.log.load.buffer.size", 5_242_880, at_least(1), HIGH),
    "Bytes read at a time while transactions are loaded.",
    accepted(INT, "transaction.state.log.min.isr", 2, at_least(1), HIGH),
    "Replicas of the transaction topic that must be in sync.",
    accepted(INT, "transaction.state.log.num.partitions", 50, at_least(1), HIGH),
    "Partitions of the transaction topic; not to be changed once it exists.",
    accepted(SHORT, "transaction.state.log.replication.factor", 3, at_least(1), HIGH),
    "Replicas of the transaction topic.",
    accepted(INT, "transaction.state.log.segment.bytes", 104_857_600, at_least(1), HIGH),
    "Segment size of the transaction topic.",
    accepted(INT, "add.partitions.to.txn.retry.backoff.ms", 20, at_least(1), HIGH),
    "Pause before a partition is again proposed for a transaction.",
    accepted(INT, "add.partitions.to.txn.retry.backoff.max.ms", 100, at_least(0), HIGH),
    "Longest time a produce waits for its partition to join a transaction.",
)
