package judge;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** The transactional producer: all or nothing, and one producer for a transactional id. */
final class TransactionScenarios {
    private TransactionScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("commit-and-abort", TransactionScenarios::commitAndAbort);
        scenarios.put("open-transaction", TransactionScenarios::openTransaction);
        scenarios.put("offsets-in-transaction", TransactionScenarios::offsetsInTransaction);
        scenarios.put("stale-offsets", TransactionScenarios::staleOffsets);
        scenarios.put("fenced", TransactionScenarios::fenced);
        scenarios.put("timed-out", TransactionScenarios::timedOut);
        scenarios.put("timeout-bounds", TransactionScenarios::timeoutBounds);
    }

    static KafkaProducer<byte[], byte[]> transactional(Clients clients, String id) {
        return transactional(clients, id, Map.of());
    }

    /** A producer that has fenced the earlier one of the same id. */
    static KafkaProducer<byte[], byte[]> transactional(Clients clients, String id, Map<String, ?> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("transactional.id", id);
        settings.putIfAbsent("max.block.ms", Waiting.SECONDS * 1000);
        KafkaProducer<byte[], byte[]> producer = clients.producer(settings);
        try {
            producer.initTransactions();
        } catch (RuntimeException failure) {
            producer.close();
            throw failure;
        }
        return producer;
    }

    /** Send the values to partition 0 and wait for all of them. */
    static void send(KafkaProducer<byte[], byte[]> producer, String topic, String... values) throws Exception {
        for (String value : values) {
            producer.send(new ProducerRecord<>(topic, 0, null, RecordScenarios.bytes(value))).get();
        }
    }

    /** The short name of what a call fails with, or "nothing". */
    static String failureOf(Step step) {
        try {
            step.run();
            return "nothing";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        } catch (Exception failed) {
            return failed.getClass().getSimpleName();
        }
    }

    @FunctionalInterface
    interface Step {
        void run() throws Exception;
    }

    static KafkaConsumer<byte[], byte[]> reader(Clients clients, String isolation, TopicPartition where) {
        KafkaConsumer<byte[], byte[]> reader = clients.consumer(Map.of("isolation.level", isolation));
        reader.assign(List.of(where));
        reader.seekToBeginning(List.of(where));
        return reader;
    }

    /** All records that this isolation level shows, as offset:value. */
    static List<String> read(Clients clients, String isolation, String topic, int partition) throws Exception {
        TopicPartition where = new TopicPartition(topic, partition);
        List<String> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> reader = reader(clients, isolation, where)) {
            long end = reader.endOffsets(List.of(where)).get(where);
            Waiting.until("the end of " + where + " is read", () -> {
                for (ConsumerRecord<byte[], byte[]> record : reader.poll(Duration.ofMillis(50))) {
                    records.add(record.offset() + ":" + RecordScenarios.text(record.value()));
                }
                return reader.position(where) >= end;
            });
        }
        return records;
    }

    private static Object commitAndAbort(Clients clients, String topic) throws Exception {
        clients.create(topic, 2, Map.of());
        try (KafkaProducer<byte[], byte[]> producer = transactional(clients, topic)) {
            producer.beginTransaction();
            send(producer, topic, "a", "b");
            producer.send(new ProducerRecord<>(topic, 1, null, RecordScenarios.bytes("other"))).get();
            producer.commitTransaction();
            producer.beginTransaction();
            send(producer, topic, "no");
            producer.abortTransaction();
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            send(producer, topic, "c");
            producer.commitTransaction();
        }
        return Map.of(
            "committed", read(clients, "read_committed", topic, 0),
            "uncommitted", read(clients, "read_uncommitted", topic, 0),
            "other", read(clients, "read_committed", topic, 1));
    }

    /** An open transaction stops readers of committed records, and no others. */
    private static Object openTransaction(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaProducer<byte[], byte[]> producer = transactional(clients, topic)) {
            clients.send(Map.of(), List.of(new ProducerRecord<>(topic, 0, null, RecordScenarios.bytes("plain"))));
            producer.beginTransaction();
            send(producer, topic, "open");
            clients.send(Map.of(), List.of(new ProducerRecord<>(topic, 0, null, RecordScenarios.bytes("later"))));
            seen.put("committed", read(clients, "read_committed", topic, 0));
            seen.put("uncommitted", read(clients, "read_uncommitted", topic, 0));
            producer.commitTransaction();
        }
        seen.put("after", read(clients, "read_committed", topic, 0));
        return seen;
    }

    /** Offsets of a group in a transaction are visible when it commits, and never when it aborts. */
    private static Object offsetsInTransaction(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        GroupScenarios.fill(clients, topic, 1, 0, 10);
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> settings = GroupScenarios.classic(topic, "Range");
        settings.put("enable.auto.commit", false);
        List<Object> offsets = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = transactional(clients, topic);
             Member member = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(member), 1);
            ConsumerGroupMetadata group = member.call(KafkaConsumer::groupMetadata);
            for (long offset : new long[] {4, 6}) {
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(Map.of(where, new OffsetAndMetadata(offset, "in")), group);
                offsets.add(committed(clients, topic, where));
                if (offset == 4) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                offsets.add(member.call(c -> shown(c.committed(Set.of(where)).get(where))));
            }
        }
        return offsets;
    }

    private static Object committed(Clients clients, String group, TopicPartition where) throws Exception {
        return shown(clients.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(where));
    }

    private static String shown(OffsetAndMetadata offset) {
        return offset == null ? null : offset.offset() + offset.metadata();
    }

    /** Offsets of a generation that is over, or of a member that has left, are refused. */
    private static Object staleOffsets(Clients clients, String topic) throws Exception {
        clients.create(topic, 2, Map.of());
        return Map.of(
            "classic", refusals(clients, topic, GroupScenarios.classic(topic + "-classic", "Range")),
            "consumer", refusals(clients, topic, GroupScenarios.modern(topic + "-consumer", "uniform")));
    }

    private static List<String> refusals(Clients clients, String topic, Map<String, Object> settings) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1));
        String group = (String) settings.get("group.id");
        settings.put("enable.auto.commit", false);
        List<String> outcomes = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = transactional(clients, group);
             Member member = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, group, List.of(member), 2);
            ConsumerGroupMetadata late = member.call(KafkaConsumer::groupMetadata);
            ConsumerGroupMetadata gone;
            try (Member guest = Member.of(clients, new Owners(), settings, topic)) {
                GroupScenarios.settle(clients, group, List.of(member, guest), 2);
                gone = guest.call(KafkaConsumer::groupMetadata);
            }
            GroupScenarios.settle(clients, group, List.of(member), 2);
            ConsumerGroupMetadata now = member.call(KafkaConsumer::groupMetadata);
            for (ConsumerGroupMetadata each : List.of(late, gone, now)) {
                producer.beginTransaction();
                outcomes.add(failureOf(() -> producer.sendOffsetsToTransaction(offsets, each)));
                producer.abortTransaction();
            }
        }
        return outcomes;
    }

    /** A second producer of the same id ends the transaction of the first, which is fenced. */
    private static Object fenced(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaProducer<byte[], byte[]> first = transactional(clients, topic);
             KafkaProducer<byte[], byte[]> idle = transactional(clients, topic + "-idle")) {
            first.beginTransaction();
            send(first, topic, "of the first");
            transactional(clients, topic + "-idle").close();
            try (KafkaProducer<byte[], byte[]> second = transactional(clients, topic)) {
                seen.put("send", failureOf(() -> send(first, topic, "too late")));
                seen.put("commit", failureOf(first::commitTransaction));
                idle.beginTransaction();
                seen.put("idleSend", failureOf(() -> send(idle, topic, "too late")));
                second.beginTransaction();
                send(second, topic, "of the second");
                second.commitTransaction();
            }
        }
        seen.put("committed", read(clients, "read_committed", topic, 0));
        return seen;
    }

    /** The coordinator aborts a transaction that takes too long; its producer fails and can start again. */
    private static Object timedOut(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        TopicPartition where = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> slow =
                 transactional(clients, topic, Map.of("transaction.timeout.ms", 1000))) {
            slow.beginTransaction();
            send(slow, topic, "slow");
            clients.send(Map.of(), List.of(new ProducerRecord<>(topic, 0, null, RecordScenarios.bytes("plain"))));
            try (KafkaConsumer<byte[], byte[]> reader = reader(clients, "read_committed", where)) {
                Waiting.until("the abort has its marker", () -> reader.endOffsets(List.of(where)).get(where) == 3);
            }
            seen.put("commit", failureOf(slow::commitTransaction));
            seen.put("state", "" + clients.admin.describeTransactions(List.of(topic)).description(topic).get().state());
        }
        try (KafkaProducer<byte[], byte[]> next = transactional(clients, topic)) {
            next.beginTransaction();
            send(next, topic, "next");
            next.commitTransaction();
        }
        seen.put("committed", read(clients, "read_committed", topic, 0));
        return seen;
    }

    private static Object timeoutBounds(Clients clients, String topic) {
        try {
            transactional(clients, topic, Map.of("transaction.timeout.ms", 1_000_000)).close();
            return "nothing";
        } catch (KafkaException failure) {
            return failure.getMessage();
        }
    }
}
