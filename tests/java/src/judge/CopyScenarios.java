package judge;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Copy jobs: read, write and commit offsets in one transaction, with aborts and rebalances on the way. */
final class CopyScenarios {
    private static final int PARTITIONS = 3;
    private static final int RECORDS = 600;

    private CopyScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("copy-classic", (clients, topic) -> copy(clients, topic, GroupScenarios.classic(topic, "Range")));
        scenarios.put("copy-cooperative",
            (clients, topic) -> copy(clients, topic, GroupScenarios.classic(topic, "CooperativeSticky")));
        scenarios.put("copy-consumer",
            (clients, topic) -> copy(clients, topic, GroupScenarios.modern(topic, "uniform")));
    }

    /** Two jobs share the work; one stops half way and a third takes its place. */
    private static Object copy(Clients clients, String topic, Map<String, Object> settings) throws Exception {
        clients.create(topic, PARTITIONS, Map.of());
        String target = clients.create(topic + "-target", 1, Map.of());
        GroupScenarios.fill(clients, topic, PARTITIONS, 0, RECORDS);
        Map<String, Object> careful = new HashMap<>(settings);
        careful.put("enable.auto.commit", false);
        careful.put("isolation.level", "read_committed");
        careful.put("max.poll.records", 20);
        ExecutorService threads = Executors.newCachedThreadPool();
        AtomicBoolean first = new AtomicBoolean();
        AtomicBoolean others = new AtomicBoolean();
        try {
            List<Future<?>> jobs = new ArrayList<>();
            jobs.add(threads.submit(job(clients, topic, "1", careful, first)));
            jobs.add(threads.submit(job(clients, topic, "2", careful, others)));
            Waiting.until("a part is copied", () -> copied(clients, target) >= RECORDS / 4);
            first.set(true);
            jobs.get(0).get();
            jobs.add(threads.submit(job(clients, topic, "3", careful, others)));
            Waiting.until("all is copied", () -> committed(clients, topic) >= RECORDS);
            others.set(true);
            for (Future<?> each : jobs) {
                each.get();
            }
        } finally {
            first.set(true);
            others.set(true);
            threads.shutdown();
        }
        List<String> values = new ArrayList<>();
        for (String line : TransactionScenarios.read(clients, "read_committed", target, 0)) {
            values.add(line.substring(line.indexOf(':') + 1));
        }
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("copied", values.size());
        seen.put("distinct", new TreeSet<>(values).size());
        seen.put("offsets", committed(clients, topic));
        return seen;
    }

    private static int copied(Clients clients, String target) throws Exception {
        return TransactionScenarios.read(clients, "read_committed", target, 0).size();
    }

    /** The committed offsets of the group, added up. */
    private static long committed(Clients clients, String group) throws Exception {
        return clients.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            .values().stream().mapToLong(OffsetAndMetadata::offset).sum();
    }

    private static Callable<Void> job(
        Clients clients, String topic, String number, Map<String, Object> settings, AtomicBoolean stopping
    ) {
        return () -> {
            String id = topic + "-" + number;
            try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(settings);
                 KafkaProducer<byte[], byte[]> producer = TransactionScenarios.transactional(clients, id)) {
                consumer.subscribe(List.of(topic));
                for (int turn = 0; !stopping.get(); turn++) {
                    ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(50));
                    if (!records.isEmpty() && !copyOnce(consumer, producer, records, turn)) {
                        rewind(consumer);
                    }
                }
            }
            return null;
        };
    }

    /** One transaction; false when it was aborted, on purpose (every third) or after a rebalance. */
    private static boolean copyOnce(
        KafkaConsumer<byte[], byte[]> consumer,
        KafkaProducer<byte[], byte[]> producer,
        ConsumerRecords<byte[], byte[]> records,
        int turn
    ) {
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(record.topic() + "-target", 0, null, record.value()));
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(records.nextOffsets());
        try {
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            if (turn % 3 != 2) {
                producer.commitTransaction();
                return true;
            }
        } catch (CommitFailedException stale) {
            // The generation is over: another member has its partitions now and reads them again.
        }
        producer.abortTransaction();
        return false;
    }

    static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
        for (Map.Entry<TopicPartition, OffsetAndMetadata> each : consumer.committed(consumer.assignment()).entrySet()) {
            if (each.getValue() == null) {
                consumer.seekToBeginning(List.of(each.getKey()));
            } else {
                consumer.seek(each.getKey(), each.getValue());
            }
        }
    }
}
