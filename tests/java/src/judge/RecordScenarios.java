package judge;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/** Consumers read what producers sent. */
final class RecordScenarios {
    private RecordScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            scenarios.put("codec-" + codec, (clients, topic) -> roundTrip(clients, topic, codec));
        }
        scenarios.put("acks", RecordScenarios::acks);
        scenarios.put("headers", RecordScenarios::headers);
        scenarios.put("create-time", (clients, topic) -> times(clients, topic, "CreateTime"));
        scenarios.put("log-append-time", (clients, topic) -> times(clients, topic, "LogAppendTime"));
        scenarios.put("idempotent", RecordScenarios::idempotent);
        scenarios.put("too-large", RecordScenarios::tooLarge);
        scenarios.put("no-key-on-compacted", RecordScenarios::noKeyOnCompacted);
        scenarios.put("auto-create", RecordScenarios::autoCreate);
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    static List<ProducerRecord<byte[], byte[]>> numbered(String topic, int count) {
        return IntStream.range(0, count)
            .mapToObj(number -> new ProducerRecord<>(topic, 0, bytes("key " + number), bytes("value " + number)))
            .toList();
    }

    private static Object roundTrip(Clients clients, String topic, String codec) throws Exception {
        clients.create(topic, 1, Map.of());
        List<Long> offsets = clients.send(Map.of("compression.type", codec, "linger.ms", 50), numbered(topic, 300));
        List<String> values = clients.read(new TopicPartition(topic, 0), 0, 300).stream()
            .map(record -> text(record.key()) + "=" + text(record.value())).toList();
        return Map.of("offsets", offsets, "values", values);
    }

    private static Object acks(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> offsets = new LinkedHashMap<>();
        for (String acks : List.of("0", "1", "all")) {
            Map<String, Object> settings = Map.of("acks", acks, "enable.idempotence", false);
            offsets.put(acks, clients.send(settings, numbered(topic, 2)));
        }
        return Map.of("offsets", offsets, "read", clients.read(new TopicPartition(topic, 0), 0, 6).size());
    }

    private static Object headers(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        ProducerRecord<byte[], byte[]> sent = new ProducerRecord<>(topic, 0, null, bytes("ünïcode 鍵"));
        sent.headers().add("twice", bytes("first")).add("null", null).add("twice", bytes("second")).add("", bytes(""));
        ProducerRecord<byte[], byte[]> tombstone = new ProducerRecord<>(topic, 0, bytes(""), null);
        clients.send(Map.of(), List.of(sent, tombstone));
        List<Object> received = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : clients.read(new TopicPartition(topic, 0), 0, 2)) {
            List<List<String>> headers = new ArrayList<>();
            for (Header header : record.headers()) {
                List<String> pair = new ArrayList<>();
                pair.add(header.key());
                pair.add(text(header.value()));
                headers.add(pair);
            }
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("key", text(record.key()));
            one.put("value", text(record.value()));
            one.put("headers", headers);
            received.add(one);
        }
        return received;
    }

    private static Object times(Clients clients, String topic, String type) throws Exception {
        clients.create(topic, 1, Map.of("message.timestamp.type", type));
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, 1_700_000_000_123L, null, bytes("v"));
        clients.send(Map.of(), List.of(record));
        ConsumerRecord<byte[], byte[]> received = clients.read(new TopicPartition(topic, 0), 0, 1).get(0);
        return Map.of(
            "type", received.timestampType().name,
            "timestamp", received.timestamp(),
            "now", System.currentTimeMillis(),
            "leaderEpoch", received.leaderEpoch().orElse(-1));
    }

    private static Object idempotent(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        List<Long> offsets = new ArrayList<>();
        TopicPartition where = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = clients.producer(Map.of("enable.idempotence", true))) {
            for (ProducerRecord<byte[], byte[]> each : numbered(topic, 10)) {
                offsets.add(producer.send(each).get().offset());
            }
            List<ProducerState> active =
                clients.admin.describeProducers(List.of(where)).partitionResult(where).get().activeProducers();
            return Map.of(
                "offsets", offsets,
                "producers", active.size(),
                "epoch", active.get(0).producerEpoch(),
                "lastSequence", active.get(0).lastSequence(),
                "openTransaction", active.get(0).currentTransactionStartOffset().isPresent());
        }
    }

    private static Object tooLarge(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of("max.message.bytes", "1000"));
        try (KafkaProducer<byte[], byte[]> producer = clients.producer(Map.of())) {
            String first = Clients.failureOf(producer.send(new ProducerRecord<>(topic, 0, null, new byte[2000])));
            long next = producer.send(new ProducerRecord<>(topic, 0, null, new byte[100])).get().offset();
            return Map.of("failure", first, "next", next);
        }
    }

    private static Object noKeyOnCompacted(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of("cleanup.policy", "compact"));
        try (KafkaProducer<byte[], byte[]> producer = clients.producer(Map.of())) {
            return Clients.failureOf(producer.send(new ProducerRecord<>(topic, 0, null, bytes("v"))));
        }
    }

    private static Object autoCreate(Clients clients, String topic) throws Exception {
        return clients.send(Map.of(), numbered(topic, 3));
    }
}
