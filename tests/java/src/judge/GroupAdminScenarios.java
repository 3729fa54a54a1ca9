package judge;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/** Groups as an administrator sees and changes them. */
final class GroupAdminScenarios {
    private GroupAdminScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("list-groups", GroupAdminScenarios::listGroups);
        scenarios.put("describe-classic",
            (clients, topic) -> describe(clients, topic, GroupScenarios.classic(topic, "RoundRobin")));
        scenarios.put("describe-consumer",
            (clients, topic) -> describe(clients, topic, GroupScenarios.modern(topic, "range")));
        scenarios.put("describe-others", GroupAdminScenarios::describeOthers);
        scenarios.put("alter-offsets", GroupAdminScenarios::alterOffsets);
        scenarios.put("delete-offsets", GroupAdminScenarios::deleteOffsets);
        scenarios.put("delete-groups", GroupAdminScenarios::deleteGroups);
        scenarios.put("remove-members-classic",
            (clients, topic) -> removeMembers(clients, topic, GroupScenarios.classic(topic, "Range")));
        scenarios.put("remove-members-consumer",
            (clients, topic) -> removeMembers(clients, topic, GroupScenarios.modern(topic, "uniform")));
    }

    private static KafkaFuture<Void> alter(Clients clients, String group, String topic, long offset) {
        Map<TopicPartition, OffsetAndMetadata> offsets =
            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(offset, Optional.of(0), "by hand"));
        return clients.admin.alterConsumerGroupOffsets(group, offsets).all();
    }

    /** A group with offsets and without members; the broker may know the topic shortly after its creation. */
    private static void simple(Clients clients, String group, String topic) throws Exception {
        Waiting.until("the offset is taken", () -> Clients.failureOf(alter(clients, group, topic, 1)).equals("nothing"));
    }

    private static Map<String, String> listed(Clients clients, String prefix, ListGroupsOptions options)
        throws Exception {
        Map<String, String> groups = new TreeMap<>();
        for (GroupListing each : clients.admin.listGroups(options).all().get()) {
            if (each.groupId().startsWith(prefix)) {
                groups.put(each.groupId().substring(prefix.length()),
                    each.type().orElseThrow() + "," + each.protocol() + "," + each.groupState().orElseThrow()
                        + (each.isSimpleConsumerGroup() ? ",simple" : ""));
            }
        }
        return groups;
    }

    private static Object listGroups(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        simple(clients, topic + "-simple", topic);
        String old = topic + "-classic";
        String young = topic + "-consumer";
        String left = topic + "-left";
        try (Member gone = Member.of(clients, new Owners(), GroupScenarios.modern(left, "uniform"), topic)) {
            GroupScenarios.settle(clients, left, List.of(gone), 1);
        }
        try (Member one = Member.of(clients, new Owners(), GroupScenarios.classic(old, "Range"), topic);
             Member two = Member.of(clients, new Owners(), GroupScenarios.modern(young, "uniform"), topic)) {
            GroupScenarios.settle(clients, old, List.of(one), 1);
            GroupScenarios.settle(clients, young, List.of(two), 1);
            Map<String, ListGroupsOptions> filters = new LinkedHashMap<>();
            filters.put("all", new ListGroupsOptions());
            filters.put("consumers", ListGroupsOptions.forConsumerGroups());
            filters.put("stable", new ListGroupsOptions().inGroupStates(Set.of(GroupState.STABLE)));
            filters.put("empty", new ListGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY)));
            filters.put("dead", new ListGroupsOptions().inGroupStates(Set.of(GroupState.DEAD)));
            filters.put("classic", new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC)));
            filters.put("modern", new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER)));
            filters.put("share", new ListGroupsOptions().withTypes(Set.of(GroupType.SHARE)));
            filters.put("stableClassic", new ListGroupsOptions()
                .withTypes(Set.of(GroupType.CLASSIC)).inGroupStates(Set.of(GroupState.STABLE)));
            filters.put("protocol", new ListGroupsOptions().withProtocolTypes(Set.of("consumer")));
            Map<String, Object> answers = new LinkedHashMap<>();
            for (Map.Entry<String, ListGroupsOptions> each : filters.entrySet()) {
                answers.put(each.getKey(), listed(clients, topic, each.getValue()));
            }
            return answers;
        }
    }

    private static Object describe(Clients clients, String topic, Map<String, Object> settings) throws Exception {
        clients.create(topic, 2, Map.of());
        settings.put("group.instance.id", "instance");
        settings.put("client.rack", "rack");
        try (Member member = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(member), 2);
            ConsumerGroupDescription group = GroupScenarios.describe(clients, topic);
            MemberDescription described = group.members().iterator().next();
            Map<String, Object> seen = new LinkedHashMap<>();
            seen.put("id", group.groupId().equals(topic));
            seen.put("simple", group.isSimpleConsumerGroup());
            seen.put("assignor", group.partitionAssignor());
            seen.put("type", group.type().toString());
            seen.put("state", group.groupState().toString());
            seen.put("coordinator", group.coordinator().id() >= 0);
            seen.put("operations", group.authorizedOperations());
            seen.put("epochs", List.of(
                group.groupEpoch().isPresent(), group.groupEpoch().equals(group.targetAssignmentEpoch())));
            seen.put("members", group.members().size());
            seen.put("memberId", described.consumerId().equals(member.call(c -> c.groupMetadata().memberId())));
            seen.put("instance", described.groupInstanceId().orElse(null));
            seen.put("rack", described.rackId().orElse(null));
            seen.put("client", described.clientId().equals("client-of-" + topic));
            seen.put("host", described.host());
            seen.put("assignment", numbers(described.assignment().topicPartitions()));
            seen.put("target", described.targetAssignment().map(to -> numbers(to.topicPartitions())).orElse(null));
            seen.put("epoch", described.memberEpoch().equals(group.groupEpoch()));
            seen.put("upgraded", described.upgraded().orElse(null));
            return seen;
        }
    }

    private static List<Integer> numbers(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::partition).sorted().toList();
    }

    private static Object describeOthers(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        simple(clients, topic + "-simple", topic);
        ConsumerGroupDescription simple = GroupScenarios.describe(clients, topic + "-simple");
        return Map.of(
            "absent", Clients.failureOf(clients.admin.describeConsumerGroups(List.of(topic + "-absent")).all()),
            "absentClassic", Clients.failureOf(clients.admin.describeClassicGroups(List.of(topic + "-absent")).all()),
            "simple", List.of(simple.isSimpleConsumerGroup(), simple.groupState().toString(), simple.type().toString(),
                simple.members().size(), simple.partitionAssignor()),
            "classic", clients.admin.describeClassicGroups(List.of(topic + "-simple")).all().get()
                .get(topic + "-simple").protocol());
    }

    private static Object alterOffsets(Clients clients, String topic) throws Exception {
        clients.create(topic, 2, Map.of());
        GroupScenarios.fill(clients, topic, 2, 0, 20);
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("absentGroup", Clients.failureOf(alter(clients, topic, topic, 4)));
        OffsetAndMetadata back = clients.admin.listConsumerGroupOffsets(topic)
            .partitionsToOffsetAndMetadata().get().get(new TopicPartition(topic, 0));
        seen.put("offset", List.of(back.offset(), back.leaderEpoch().orElse(-1), back.metadata()));
        seen.put("absentTopic", Clients.failureOf(alter(clients, topic, topic + "-absent", 4)));
        seen.put("longNote", failureOfLongNote(clients, topic));
        try (Member member = Member.of(clients, new Owners(), GroupScenarios.classic(topic, "Range"), topic)) {
            GroupScenarios.settle(clients, topic, List.of(member), 2);
            Waiting.until("all but 4 are read", () -> member.read.size() >= 16);
            seen.put("read", member.read.size());
            seen.put("active", Clients.failureOf(alter(clients, topic, topic, 1)));
        }
        Map<String, ListConsumerGroupOffsetsSpec> several = Map.of(
            topic, new ListConsumerGroupOffsetsSpec().topicPartitions(
                List.of(new TopicPartition(topic, 1), new TopicPartition(topic, 9))),
            topic + "-absent", new ListConsumerGroupOffsetsSpec());
        Map<String, Object> batched = new TreeMap<>();
        for (Map.Entry<String, Map<TopicPartition, OffsetAndMetadata>> each
            : clients.admin.listConsumerGroupOffsets(several).all().get().entrySet()) {
            Map<String, Object> offsets = new TreeMap<>();
            each.getValue().forEach((where, offset) ->
                offsets.put("" + where.partition(), offset == null ? null : offset.offset()));
            batched.put(each.getKey().substring(topic.length()), offsets);
        }
        seen.put("batched", batched);
        return seen;
    }

    private static String failureOfLongNote(Clients clients, String topic) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> noted =
            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(4, "n".repeat(5000)));
        return Clients.failureOf(clients.admin.alterConsumerGroupOffsets(topic, noted).all());
    }

    private static Object deleteOffsets(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        clients.create(topic + "-other", 1, Map.of());
        TopicPartition own = new TopicPartition(topic, 0);
        TopicPartition other = new TopicPartition(topic + "-other", 0);
        simple(clients, topic, topic);
        simple(clients, topic, topic + "-other");
        Map<String, Object> seen = new LinkedHashMap<>();
        Map<String, Object> settings = GroupScenarios.classic(topic, "Range");
        settings.put("enable.auto.commit", false);
        try (Member member = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(member), 1);
            var answer = clients.admin.deleteConsumerGroupOffsets(topic, Set.of(own, other));
            seen.put("subscribed", Clients.failureOf(answer.partitionResult(own)));
            seen.put("unsubscribed", Clients.failureOf(answer.partitionResult(other)));
        }
        seen.put("kept", topicsOf(clients, topic));
        seen.put("empty", Clients.failureOf(clients.admin.deleteConsumerGroupOffsets(topic, Set.of(own)).all()));
        seen.put("gone", topicsOf(clients, topic));
        seen.put("absentGroup",
            Clients.failureOf(clients.admin.deleteConsumerGroupOffsets(topic + "-absent", Set.of(own)).all()));
        return seen;
    }

    private static List<String> topicsOf(Clients clients, String group) throws Exception {
        List<String> suffixes = new ArrayList<>();
        for (TopicPartition each
            : clients.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().keySet()) {
            suffixes.add(each.topic().substring(group.length()));
        }
        return suffixes;
    }

    private static Object deleteGroups(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        for (Map<String, Object> settings : List.of(
            GroupScenarios.classic(topic + "-classic", "Range"), GroupScenarios.modern(topic + "-consumer", "range"))) {
            String group = (String) settings.get("group.id");
            List<String> outcomes = new ArrayList<>();
            try (Member member = Member.of(clients, new Owners(), settings, topic)) {
                GroupScenarios.settle(clients, group, List.of(member), 1);
                outcomes.add(delete(clients, group));
            }
            outcomes.add(delete(clients, group));
            outcomes.add(delete(clients, group));
            outcomes.add("" + topicsOf(clients, group).size());
            seen.put(group.substring(topic.length()), outcomes);
        }
        return seen;
    }

    private static String delete(Clients clients, String group) throws Exception {
        return Clients.failureOf(clients.admin.deleteConsumerGroups(List.of(group)).all());
    }

    /** A static member is removed by its name; an unknown name is refused; then all others at once. */
    private static Object removeMembers(Clients clients, String topic, Map<String, Object> settings) throws Exception {
        clients.create(topic, 2, Map.of());
        Map<String, Object> named = new LinkedHashMap<>(settings);
        named.put("group.instance.id", "named");
        Map<String, Object> seen = new LinkedHashMap<>();
        Owners owners = new Owners();
        Member fixed = Member.of(clients, owners, named, topic);
        try (Member other = Member.of(clients, owners, settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(fixed, other), 2);
            fixed.close();
            seen.put("closed", GroupScenarios.describe(clients, topic).members().size());
            seen.put("unknown", Clients.failureOf(remove(clients, topic, "unknown")));
            seen.put("named", Clients.failureOf(remove(clients, topic, "named")));
            GroupScenarios.settle(clients, topic, List.of(other), 2);
            seen.put("left", GroupScenarios.describe(clients, topic).members().size());
        } finally {
            fixed.close();
        }
        return seen;
    }

    private static KafkaFuture<Void> remove(Clients clients, String group, String instance) {
        RemoveMembersFromConsumerGroupOptions one =
            new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove(instance)));
        return clients.admin.removeMembersFromConsumerGroup(group, one).all();
    }
}
