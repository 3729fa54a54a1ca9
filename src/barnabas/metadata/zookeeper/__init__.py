"""The ZooKeeper metadata store: a cluster of brokers. barnabas.metadata.store says what it guarantees.

    settings = ZooKeeperSettings("host:2181,host:2181/chroot", session_timeout_ms=18_000)
    store = await ZooKeeperStore.open(settings, cluster_id=id_in_meta_properties_or_none)

`settings.py` does not import kazoo; `store.py` does, so import it only when a ZooKeeper store is opened.
layout.py describes the nodes."""
