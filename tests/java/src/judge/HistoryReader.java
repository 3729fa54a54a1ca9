package judge;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer of a recorded history. Partitions are [topic, number], offsets [topic, number, offset]. */
final class HistoryReader implements ConsumerRebalanceListener {
    private static final Duration CLOSE_TIME_MAX = Duration.ofSeconds(10);
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final List<List<Object>> rebalanced = new ArrayList<>();

    HistoryReader(JsonNode settings) {
        consumer = new KafkaConsumer<>(
            HistoryWriter.properties(settings), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    ConsumerGroupMetadata groupMetadata() {
        return consumer.groupMetadata();
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode places) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        places.forEach(each -> offsets.put(partition(each), new OffsetAndMetadata(each.get(2).asLong())));
        return offsets;
    }

    private static TopicPartition partition(JsonNode place) {
        return new TopicPartition(place.get(0).asText(), place.get(1).asInt());
    }

    private static Set<TopicPartition> partitions(JsonNode places) {
        Set<TopicPartition> partitions = new HashSet<>();
        places.forEach(each -> partitions.add(partition(each)));
        return partitions;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        rebalanced.addAll(named(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        rebalanced.addAll(named(partitions));
    }

    private static List<List<Object>> named(Collection<TopicPartition> partitions) {
        List<List<Object>> names = new ArrayList<>();
        partitions.forEach(each -> names.add(List.of(each.topic(), each.partition())));
        return names;
    }

    Object run(JsonNode command) {
        switch (command.get("command").asText()) {
            case "assign" -> {
                consumer.assign(partitions(command.get("partitions")));
                consumer.seekToBeginning(consumer.assignment());
            }
            case "subscribe" -> {
                List<String> topics = new ArrayList<>();
                command.get("topics").forEach(each -> topics.add(each.asText()));
                consumer.subscribe(topics, this);
            }
            case "poll" -> {
                return poll(command.get("ms").asLong());
            }
            case "seek" -> offsets(command.get("offsets")).forEach(consumer::seek);
            case "assignment" -> {
                return named(consumer.assignment());
            }
            case "commit" -> consumer.commitSync(offsets(command.get("offsets")));
            case "committed" -> {
                return committed(partitions(command.get("partitions")));
            }
            default -> throw new IllegalArgumentException("no command of a reader: " + command);
        }
        return null;
    }

    /** What was rebalanced, and the records after that: [topic, partition, offset, value]. */
    private Map<String, Object> poll(long milliseconds) {
        List<List<Object>> records = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(milliseconds))) {
            String value = each.value() == null ? "" : new String(each.value(), StandardCharsets.UTF_8);
            records.add(List.of(each.topic(), each.partition(), each.offset(), value));
        }
        List<List<Object>> moved = List.copyOf(rebalanced);
        rebalanced.clear();
        return Map.of("rebalanced", moved, "records", records);
    }

    private List<List<Object>> committed(Set<TopicPartition> partitions) {
        List<List<Object>> found = new ArrayList<>();
        consumer.committed(partitions).forEach((partition, offset) -> found.add(
            List.of(partition.topic(), partition.partition(), offset == null ? -1L : offset.offset())));
        return found;
    }

    void close(boolean isClean) {
        if (isClean) {
            consumer.close(CloseOptions.timeout(CLOSE_TIME_MAX));
        } else {
            consumer.close(CloseOptions.timeout(Duration.ZERO)
                .withGroupMembershipOperation(GroupMembershipOperation.REMAIN_IN_GROUP));
        }
    }
}
