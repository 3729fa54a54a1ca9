package clients;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** Producers: idempotent and compressed, and transactional. */
final class Producing {
    static final int COUNT = 200;

    private Producing() { }

    private static KafkaProducer<String, String> producer(Properties settings) {
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    /** Send the values to partition 0; the offsets they got. */
    private static List<Long> send(KafkaProducer<String, String> producer, String topic, List<String> values)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String value : values) {
            sent.add(producer.send(new ProducerRecord<>(topic, 0, "key", value)));
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            offsets.add(each.get().offset());
        }
        return offsets;
    }

    static void plain(Properties settings, String topic, Map<String, Object> seen) throws Exception {
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("compression.type", "lz4");
        settings.put("linger.ms", "5");
        List<String> values = new ArrayList<>();
        for (int number = 0; number < COUNT; number++) {
            values.add("value " + number);
        }
        try (KafkaProducer<String, String> producer = producer(settings)) {
            seen.put("partitions", producer.partitionsFor(topic).size());
            List<Long> offsets = send(producer, topic, values);
            seen.put("first", offsets.get(0));
            seen.put("last", offsets.get(offsets.size() - 1));
        }
    }

    /** Commit, abort, commit together with an offset of a group that is named like the topic. */
    static void transactional(Properties settings, String topic, Map<String, Object> seen) throws Exception {
        settings.put("transactional.id", topic);
        try (KafkaProducer<String, String> producer = producer(settings)) {
            producer.initTransactions();
            producer.beginTransaction();
            seen.put("committed", send(producer, topic, List.of("a", "b")));
            producer.commitTransaction();
            producer.beginTransaction();
            seen.put("aborted", send(producer, topic, List.of("no")));
            producer.abortTransaction();
            producer.beginTransaction();
            seen.put("with offset", send(producer, topic, List.of("c")));
            producer.sendOffsetsToTransaction(
                Collections.singletonMap(new TopicPartition(topic, 0), new OffsetAndMetadata(2)),
                new ConsumerGroupMetadata(topic));
            producer.commitTransaction();
        }
    }
}
