package judge;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/** The only member of a group: reads what Writing writes, and commits after every poll. */
final class Reading extends Job {
    private final Clients clients;
    private final String topic;
    private final Map<String, Object> settings;
    private final Set<Integer> values = new HashSet<>();
    private final Map<Integer, Integer> last = new HashMap<>();
    private final Set<Integer> nearest = new TreeSet<>();
    private int outOfOrder;

    Reading(Clients clients, String topic, Map<String, String> settings) {
        this.clients = clients;
        this.topic = topic;
        this.settings = new HashMap<>(settings);
        this.settings.put("auto.offset.reset", "earliest");
        this.settings.put("enable.auto.commit", false);
    }

    @Override
    void run() {
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(settings)) {
            consumer.subscribe(List.of(topic));
            while (!isStopping()) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(50));
                if (!records.isEmpty()) {
                    records.forEach(this::note);
                    consumer.commitSync();
                    consumer.metrics().forEach(this::noteNearest);
                }
            }
        }
    }

    private void note(ConsumerRecord<byte[], byte[]> record) {
        int value = Integer.parseInt(RecordScenarios.text(record.value()));
        values.add(value);
        Integer before = last.put(record.partition(), value);
        if (before != null && before >= value) {
            outOfOrder++;
        }
        done.incrementAndGet();
    }

    /** The replica that the leader has sent the consumer to; -1 if there is none. */
    private void noteNearest(MetricName name, Metric metric) {
        if (name.name().equals("preferred-read-replica")) {
            nearest.add(((Number) metric.metricValue()).intValue());
        }
    }

    @Override
    Object result() {
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("read", done.get());
        seen.put("distinct", values.size());
        seen.put("outOfOrder", outOfOrder);
        seen.put("nearest", nearest);
        return seen;
    }
}
