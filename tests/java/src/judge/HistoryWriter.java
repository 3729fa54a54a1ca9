package judge;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A producer of a recorded history; with a transactional.id it is initialised at once. */
final class HistoryWriter {
    private static final Duration CLOSE_TIME_MAX = Duration.ofSeconds(10);
    private final KafkaProducer<byte[], byte[]> producer;

    HistoryWriter(JsonNode settings) {
        producer = new KafkaProducer<>(properties(settings), new ByteArraySerializer(), new ByteArraySerializer());
        if (settings.has("transactional.id")) {
            try {
                producer.initTransactions();
            } catch (RuntimeException failure) {
                producer.close(Duration.ZERO);
                throw failure;
            }
        }
    }

    static Properties properties(JsonNode settings) {
        Properties properties = new Properties();
        settings.properties().forEach(each -> properties.put(each.getKey(), each.getValue().asText()));
        return properties;
    }

    Object run(JsonNode command) throws Exception {
        switch (command.get("command").asText()) {
            case "send" -> {
                return send(command.get("records"));
            }
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            default -> throw new IllegalArgumentException("no command of a writer: " + command);
        }
        return null;
    }

    /** Each record is [topic, partition, value]. All are sent before the first answer is awaited. */
    private List<Map<String, Object>> send(JsonNode records) throws InterruptedException {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode each : records) {
            byte[] value = each.get(2).asText().getBytes(StandardCharsets.UTF_8);
            sent.add(producer.send(new ProducerRecord<>(each.get(0).asText(), each.get(1).asInt(), null, value)));
        }
        List<Map<String, Object>> outcomes = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            Map<String, Object> outcome = new HashMap<>();
            try {
                RecordMetadata written = each.get();
                outcome.put("offset", written.hasOffset() ? written.offset() : null);
            } catch (ExecutionException failure) {
                outcome.put("failure", failure.getCause().toString());
            }
            outcomes.add(outcome);
        }
        return outcomes;
    }

    void sendOffsets(Map<TopicPartition, OffsetAndMetadata> offsets, ConsumerGroupMetadata group) {
        producer.sendOffsetsToTransaction(offsets, group);
    }

    void close(boolean isClean) {
        producer.close(isClean ? CLOSE_TIME_MAX : Duration.ZERO);
    }
}
