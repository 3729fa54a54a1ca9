package judge;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java clients as the scenarios use them: bytes in and out, no groups. */
final class Clients implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    final Admin admin;
    private final String bootstrap;

    Clients(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(properties(Map.of()));
    }

    @Override
    public void close() {
        admin.close();
    }

    private Properties properties(Map<String, ?> settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(settings);
        return properties;
    }

    KafkaProducer<byte[], byte[]> producer(Map<String, ?> settings) {
        return new KafkaProducer<>(properties(settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaConsumer<byte[], byte[]> consumer(Map<String, ?> settings) {
        Properties properties = properties(settings);
        properties.putIfAbsent("auto.offset.reset", "none");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    String create(String topic, int partitions, Map<String, String> configs) throws Exception {
        NewTopic newTopic = new NewTopic(topic, partitions, (short) 1).configs(configs);
        admin.createTopics(List.of(newTopic)).all().get();
        return topic;
    }

    /** Send all and wait for all; the offsets in order of sending. */
    List<Long> send(Map<String, ?> settings, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            for (ProducerRecord<byte[], byte[]> each : records) {
                sent.add(producer.send(each));
            }
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            offsets.add(each.get().offset());
        }
        return offsets;
    }

    /** Poll until there are enough records or the time is over. */
    static List<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> received = new ArrayList<>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (received.size() < count && System.nanoTime() < deadline) {
            consumer.poll(Duration.ofMillis(100)).forEach(received::add);
        }
        return received;
    }

    List<ConsumerRecord<byte[], byte[]>> read(TopicPartition where, long offset, int count) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            consumer.assign(List.of(where));
            consumer.seek(where, offset);
            return poll(consumer, count);
        }
    }

    /** The short name of what a call fails with, or "nothing". */
    static String failureOf(Future<?> call) throws InterruptedException {
        try {
            call.get();
            return "nothing";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        }
    }
}
