package clients;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer that joins a group named like its topic. */
final class Consuming {
    private static final long PATIENCE_NANOS = Duration.ofSeconds(30).toNanos();

    private Consuming() { }

    static void inGroup(Properties settings, String topic, Map<String, Object> seen) {
        settings.put("group.id", topic);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        TopicPartition first = new TopicPartition(topic, 0);
        List<String> values = new ArrayList<>();
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            consumer.subscribe(Collections.singleton(topic));
            long deadline = System.nanoTime() + PATIENCE_NANOS;
            while (values.size() < Producing.COUNT && System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                    values.add(each.value());
                }
            }
            consumer.commitSync();
            OffsetAndMetadata committed = consumer.committed(Collections.singleton(first)).get(first);
            seen.put("assigned", consumer.assignment().size());
            seen.put("end", consumer.endOffsets(Collections.singleton(first)).get(first));
            seen.put("committed", committed == null ? null : committed.offset());
        }
        seen.put("count", values.size());
        seen.put("distinct", values.stream().distinct().count());
    }
}
