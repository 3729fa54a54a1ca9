package judge;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Positions in a log, fetch sessions and waiting. */
final class OffsetScenarios {
    private static final long BASE_MS = 1_700_000_000_000L;

    private OffsetScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("positions", OffsetScenarios::positions);
        scenarios.put("offsets-for-times", OffsetScenarios::offsetsForTimes);
        scenarios.put("list-offsets", OffsetScenarios::listOffsets);
        scenarios.put("out-of-range", OffsetScenarios::outOfRange);
        scenarios.put("fetch-session", OffsetScenarios::fetchSession);
        scenarios.put("long-poll", OffsetScenarios::longPoll);
        scenarios.put("delete-records", OffsetScenarios::deleteRecords);
    }

    private static List<ProducerRecord<byte[], byte[]>> timed(String topic, long... steps) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (long step : steps) {
            records.add(new ProducerRecord<>(topic, 0, BASE_MS + step, null, new byte[10]));
        }
        return records;
    }

    private static Object positions(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.send(Map.of(), RecordScenarios.numbered(topic, 20));
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(Map.of())) {
            consumer.assign(List.of(where));
            consumer.seekToEnd(List.of(where));
            seen.put("end", consumer.position(where));
            consumer.seekToBeginning(List.of(where));
            seen.put("beginning", consumer.position(where));
            consumer.seek(where, 13);
            seen.put("from13", Clients.poll(consumer, 7).stream().map(ConsumerRecord::offset).toList());
            seen.put("beginningOffsets", consumer.beginningOffsets(List.of(where)).get(where));
            seen.put("endOffsets", consumer.endOffsets(List.of(where)).get(where));
            seen.put("lag", consumer.currentLag(where).orElse(-1));
            seen.put("partitions", consumer.partitionsFor(topic).size());
        }
        return seen;
    }

    private static Object offsetsForTimes(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.send(Map.of("linger.ms", 50, "compression.type", "lz4"), timed(topic, 0, 10, 20, 30));
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> offsets = new LinkedHashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(Map.of())) {
            for (long step : new long[] {-1, 10, 11, 31}) {
                OffsetAndTimestamp at = consumer.offsetsForTimes(Map.of(where, BASE_MS + step)).get(where);
                offsets.put("" + step, at == null ? null : List.of(at.offset(), at.timestamp() - BASE_MS));
            }
        }
        return offsets;
    }

    private static Object listOffsets(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.send(Map.of("linger.ms", 50), timed(topic, 5, 900, 20));
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, OffsetSpec> specs = new LinkedHashMap<>();
        specs.put("earliest", OffsetSpec.earliest());
        specs.put("latest", OffsetSpec.latest());
        specs.put("maxTimestamp", OffsetSpec.maxTimestamp());
        specs.put("forTimestamp", OffsetSpec.forTimestamp(BASE_MS + 6));
        specs.put("earliestLocal", OffsetSpec.earliestLocal());
        Map<String, Object> offsets = new LinkedHashMap<>();
        for (Map.Entry<String, OffsetSpec> each : specs.entrySet()) {
            ListOffsetsResultInfo at =
                clients.admin.listOffsets(Map.of(where, each.getValue())).partitionResult(where).get();
            long step = at.timestamp() < 0 ? at.timestamp() : at.timestamp() - BASE_MS;
            offsets.put(each.getKey(), List.of(at.offset(), step, at.leaderEpoch().orElse(-1)));
        }
        return offsets;
    }

    private static Object outOfRange(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.send(Map.of(), RecordScenarios.numbered(topic, 5));
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(Map.of())) {
            consumer.assign(List.of(where));
            consumer.seek(where, 100);
            Clients.poll(consumer, 1);
            seen.put("none", "nothing");
        } catch (RuntimeException failure) {
            seen.put("none", failure.getClass().getSimpleName());
        }
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(Map.of("auto.offset.reset", "earliest"))) {
            consumer.assign(List.of(where));
            consumer.seek(where, 100);
            seen.put("earliest", Clients.poll(consumer, 5).stream().map(ConsumerRecord::offset).toList());
        }
        return seen;
    }

    /** Many partitions and many polls: all but the first fetch of the session name only what changes. */
    private static Object fetchSession(Clients clients, String topic) throws Exception {
        int partitions = 20;
        clients.create(topic, partitions, Map.of());
        List<TopicPartition> all =
            IntStream.range(0, partitions).mapToObj(number -> new TopicPartition(topic, number)).toList();
        List<Integer> counts = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(Map.of("fetch.max.wait.ms", 200))) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            for (int turn = 0; turn < 6; turn++) {
                if (turn == 3) {
                    consumer.assign(all.subList(0, 10));  // the session must forget the others
                    consumer.seekToEnd(all.subList(0, 10));
                    all.subList(0, 10).forEach(consumer::position);
                }
                List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
                for (int number = turn % 2; number < partitions; number += 2) {
                    records.add(new ProducerRecord<>(topic, number, null, new byte[100]));
                }
                clients.send(Map.of(), records);
                counts.add(Clients.poll(consumer, turn < 3 ? 10 : 5).size());
            }
        }
        return counts;
    }

    private static Object longPoll(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        TopicPartition where = new TopicPartition(topic, 0);
        Thread later = new Thread(() -> {
            try {
                Thread.sleep(1000);
                clients.send(Map.of(), RecordScenarios.numbered(topic, 1));
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        });
        Map<String, Object> patient = Map.of("fetch.max.wait.ms", 50_000, "request.timeout.ms", 60_000);
        KafkaConsumer<byte[], byte[]> consumer = clients.consumer(patient);
        try {
            consumer.assign(List.of(where));
            consumer.seek(where, 0);
            later.start();
            int received = consumer.poll(Duration.ofSeconds(20)).count();
            later.join();
            return received;
        } finally {
            // Its next fetch is already waiting at the broker, and close() with a timeout would wait for it.
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    private static Object deleteRecords(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.send(Map.of(), RecordScenarios.numbered(topic, 10));
        TopicPartition where = new TopicPartition(topic, 0);
        long low = clients.admin.deleteRecords(Map.of(where, RecordsToDelete.beforeOffset(6)))
            .lowWatermarks().get(where).get().lowWatermark();
        String beyond = Clients.failureOf(
            clients.admin.deleteRecords(Map.of(where, RecordsToDelete.beforeOffset(60))).all());
        long first = clients.admin.listOffsets(Map.of(where, OffsetSpec.earliest())).partitionResult(where).get().offset();
        return Map.of("low", low, "beyond", beyond, "first", first);
    }
}
