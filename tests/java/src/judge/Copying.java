package judge;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Copies a topic in transactions that commit the offsets too; aborts some and copies those records again. */
final class Copying extends Job {
    private static final int ABORTED_OF = 5;
    private final Clients clients;
    private final String source;
    private final String target;
    private final Map<String, Object> settings = new HashMap<>();
    private final String transactionalId;

    Copying(Clients clients, String source, String target, String group, String transactionalId) {
        this.clients = clients;
        this.source = source;
        this.target = target;
        this.transactionalId = transactionalId;
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("isolation.level", "read_committed");
    }

    @Override
    void run() {
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(settings);
             KafkaProducer<byte[], byte[]> producer = TransactionScenarios.transactional(clients, transactionalId)) {
            consumer.subscribe(List.of(source));
            for (int turn = 1; !isStopping(); turn++) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(50));
                if (!records.isEmpty()) {
                    copy(consumer, producer, records, turn % ABORTED_OF == 0);
                }
            }
        }
    }

    private void copy(
        KafkaConsumer<byte[], byte[]> consumer,
        KafkaProducer<byte[], byte[]> producer,
        ConsumerRecords<byte[], byte[]> records,
        boolean aborts
    ) {
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(target, 0, null, record.value()));
        }
        producer.sendOffsetsToTransaction(new HashMap<>(records.nextOffsets()), consumer.groupMetadata());
        if (aborts) {
            producer.abortTransaction();
            CopyScenarios.rewind(consumer);
        } else {
            producer.commitTransaction();
            done.addAndGet(records.count());
        }
    }

    @Override
    Object result() {
        return done.get();
    }
}
