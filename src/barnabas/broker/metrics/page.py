"""The page that a broker serves beside its metrics."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from barnabas.broker.metrics.process import release

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Barnabas broker {broker_id}</title></head>
<body>
<h1>Barnabas broker {broker_id}</h1>
<p>Version {version}, cluster {cluster_id}.</p>
<p>This port serves the metrics of the broker for Prometheus: <a href="/metrics">/metrics</a>, as
OpenMetrics and with gzip if the scraper asks for it. Probes of orchestrators ask
<a href="/health">/health</a> and <a href="/ready">/ready</a>. Kafka clients connect to {addresses}.</p>
</body>
</html>
"""


def page_of(broker: Broker) -> str:
    addresses = ", ".join(str(endpoint) for endpoint in broker.endpoints)
    return PAGE.format(
        broker_id=broker.id,
        version=release(),
        cluster_id=html.escape(broker.metadata.cluster_id),
        addresses=html.escape(addresses),
    )
