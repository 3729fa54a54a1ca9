package judge;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;

/** What an administrator does with the partitions of a cluster. */
final class ClusterAdmin {
    private final Admin admin;

    ClusterAdmin(Admin admin) {
        this.admin = admin;
    }

    Object run(String command, List<String> arguments) throws Exception {
        String topic = arguments.get(0);
        TopicPartition first = new TopicPartition(topic, 0);
        switch (command) {
            case "create" -> {
                short replicas = Short.parseShort(arguments.get(2));
                NewTopic created = new NewTopic(topic, Integer.parseInt(arguments.get(1)), replicas);
                admin.createTopics(List.of(created)).all().get();
            }
            case "reassign" -> {
                List<Integer> replicas = Stream.of(arguments.get(1).split(",")).map(Integer::valueOf).toList();
                NewPartitionReassignment target = new NewPartitionReassignment(replicas);
                admin.alterPartitionReassignments(Map.of(first, Optional.of(target))).all().get();
                Waiting.until("the move ends", () -> admin.listPartitionReassignments().reassignments().get().isEmpty());
            }
            case "elect" -> admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).all().get();
            case "describe" -> {
                return described(topic);
            }
            default -> throw new IllegalArgumentException("no command is called " + command);
        }
        return null;
    }

    /** Partition 0. */
    private Map<String, Object> described(String topic) throws Exception {
        TopicPartitionInfo first =
            admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().get(0);
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("leader", first.leader() == null ? -1 : first.leader().id());
        seen.put("replicas", first.replicas().stream().map(Node::id).toList());
        seen.put("inSync", first.isr().stream().map(Node::id).sorted().toList());
        return seen;
    }
}
