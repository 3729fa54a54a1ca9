package judge;

import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** An idempotent producer that writes 0, 1, 2 ... and does not wait for one record before it sends the next. */
final class Writing extends Job {
    private static final int PAUSE_MS = 4;
    private final Clients clients;
    private final String topic;
    private int sent;

    Writing(Clients clients, String topic) {
        this.clients = clients;
        this.topic = topic;
    }

    @Override
    void run() throws Exception {
        Map<String, Object> settings = Map.of("acks", "all", "enable.idempotence", true);
        try (KafkaProducer<byte[], byte[]> producer = clients.producer(settings)) {
            int partitions = producer.partitionsFor(topic).size();
            while (!isStopping() && failure == null) {
                byte[] value = RecordScenarios.bytes(Integer.toString(sent));
                producer.send(new ProducerRecord<>(topic, sent % partitions, null, value), (where, failed) -> {
                    if (failed == null) {
                        done.incrementAndGet();
                    } else {
                        failure = failed.toString();
                    }
                });
                sent++;
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    @Override
    Object result() {
        return Map.of("sent", sent, "acknowledged", done.get());
    }
}
