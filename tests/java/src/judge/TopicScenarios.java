package judge;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;

/** Topics, partitions, directories and the cluster through the Java admin client. */
final class TopicScenarios {
    private TopicScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("topic-life", TopicScenarios::topicLife);
        scenarios.put("topic-errors", TopicScenarios::topicErrors);
        scenarios.put("validate-only", TopicScenarios::validateOnly);
        scenarios.put("manual-assignment", TopicScenarios::manualAssignment);
        scenarios.put("create-partitions", TopicScenarios::createPartitions);
        scenarios.put("log-dirs", TopicScenarios::logDirs);
        scenarios.put("cluster", TopicScenarios::cluster);
        scenarios.put("recreated-topic", TopicScenarios::recreatedTopic);
    }

    private static Object topicLife(Clients clients, String topic) throws Exception {
        NewTopic newTopic = new NewTopic(topic, Optional.of(3), Optional.empty()).configs(Map.of("retention.ms", "4242"));
        CreateTopicsResult created = clients.admin.createTopics(List.of(newTopic));
        Map<String, Object> seen = new LinkedHashMap<>();
        Uuid id = created.topicId(topic).get();
        seen.put("partitions", created.numPartitions(topic).get());
        seen.put("replication", created.replicationFactor(topic).get());
        seen.put("retention", created.config(topic).get().get("retention.ms").value());
        TopicDescription byName = clients.admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        seen.put("sameId", byName.topicId().equals(id));
        seen.put("leaders", byName.partitions().stream().filter(each -> each.leader() != null).count());
        seen.put("isr", byName.partitions().get(2).isr().size());
        TopicCollection.TopicIdCollection ids = TopicCollection.ofTopicIds(List.of(id));
        seen.put("byId", clients.admin.describeTopics(ids).allTopicIds().get().get(id).name().equals(topic));
        seen.put("listed", clients.admin.listTopics().names().get().contains(topic));
        clients.admin.deleteTopics(ids).all().get();
        seen.put("deleted", Clients.failureOf(clients.admin.describeTopics(ids).allTopicIds()));
        seen.put("deletedTwice", Clients.failureOf(clients.admin.deleteTopics(ids).all()));
        return seen;
    }

    private static Object topicErrors(Clients clients, String topic) throws Exception {
        clients.create(topic, 2, Map.of());
        Map<String, NewTopic> wrong = new TreeMap<>();
        wrong.put("exists", new NewTopic(topic, 1, (short) 1));
        wrong.put("replication", new NewTopic(topic + "-r", 1, (short) 5));
        wrong.put("partitions", new NewTopic(topic + "-p", 0, (short) 1));
        wrong.put("name", new NewTopic("a b", 1, (short) 1));
        wrong.put("config", new NewTopic(topic + "-c", 1, (short) 1).configs(Map.of("retention.ms", "soon")));
        wrong.put("assignment", new NewTopic(topic + "-a", Map.of(0, List.of(77))));
        Map<String, Object> failures = new LinkedHashMap<>();
        for (Map.Entry<String, NewTopic> each : wrong.entrySet()) {
            failures.put(each.getKey(), Clients.failureOf(clients.admin.createTopics(List.of(each.getValue())).all()));
        }
        failures.put("absent", Clients.failureOf(clients.admin.deleteTopics(List.of(topic + "-absent")).all()));
        failures.put("describe", Clients.failureOf(clients.admin.describeTopics(List.of(topic + "-x")).allTopicNames()));
        failures.put("shrink", Clients.failureOf(
            clients.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(1))).all()));
        return failures;
    }

    private static Object validateOnly(Clients clients, String topic) throws Exception {
        CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(true);
        CreateTopicsResult result = clients.admin.createTopics(List.of(new NewTopic(topic, 4, (short) 1)), options);
        int partitions = result.numPartitions(topic).get();
        return Map.of("partitions", partitions, "exists", clients.admin.listTopics().names().get().contains(topic));
    }

    private static Object manualAssignment(Clients clients, String topic) throws Exception {
        int node = clients.admin.describeCluster().nodes().get().iterator().next().id();
        NewTopic newTopic = new NewTopic(topic, Map.of(0, List.of(node), 1, List.of(node)));
        clients.admin.createTopics(List.of(newTopic)).all().get();
        return clients.admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    private static Object createPartitions(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
        return clients.admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    private static Object logDirs(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.send(Map.of(), RecordScenarios.numbered(topic, 50));
        int node = clients.admin.describeCluster().nodes().get().iterator().next().id();
        Map<String, Object> seen = new LinkedHashMap<>();
        for (LogDirDescription dir : clients.admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).values()) {
            ReplicaInfo replica = dir.replicaInfos().get(new TopicPartition(topic, 0));
            if (replica != null) {
                seen.put("size", replica.size());
                seen.put("lag", replica.offsetLag());
                seen.put("future", replica.isFuture());
                seen.put("total", dir.totalBytes().orElse(-1));
                seen.put("usable", dir.usableBytes().orElse(-1));
                seen.put("error", String.valueOf(dir.error()));
            }
        }
        return seen;
    }

    private static Object cluster(Clients clients, String topic) throws Exception {
        DescribeClusterResult result = clients.admin.describeCluster();
        return Map.of(
            "id", result.clusterId().get(),
            "nodes", result.nodes().get().stream().map(node -> node.host() + ":" + node.port()).toList(),
            "controllerIsANode", result.nodes().get().contains(result.controller().get()),
            "features", clients.admin.describeFeatures().featureMetadata().get().supportedFeatures().size());
    }

    private static Object recreatedTopic(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.send(Map.of(), RecordScenarios.numbered(topic, 5));
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> quick = Map.of("metadata.max.age.ms", 500, "auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer = clients.consumer(quick)) {
            consumer.assign(List.of(where));
            consumer.seekToBeginning(List.of(where));
            int before = Clients.poll(consumer, 5).size();
            clients.admin.deleteTopics(List.of(topic)).all().get();
            clients.create(topic, 1, Map.of());
            clients.send(Map.of(), RecordScenarios.numbered(topic, 8));
            return Map.of("before", before, "after", !Clients.poll(consumer, 1).isEmpty());
        }
    }
}
