package judge;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.common.TopicPartition;

/** Which member has each partition of a group now, and every time that two had the same one. */
final class Owners {
    /** Partitions that were assigned to a member while another member still had them. */
    final List<String> overlaps = new CopyOnWriteArrayList<>();
    private final Map<TopicPartition, Member> owners = new ConcurrentHashMap<>();

    void take(TopicPartition partition, Member member) {
        Member before = owners.put(partition, member);
        if (before != null && before != member) {
            overlaps.add(partition.toString());
        }
    }

    void give(TopicPartition partition, Member member) {
        owners.remove(partition, member);
    }
}
