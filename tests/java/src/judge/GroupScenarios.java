package judge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;

/** Members of a group share its partitions when members and topics come and go. */
final class GroupScenarios {
    private static final String ASSIGNORS = "org.apache.kafka.clients.consumer.";
    /** Two members and two topics of three partitions: shares by topic, or over all partitions. */
    private static final List<Integer> UNEVEN = List.of(2, 4);
    private static final List<Integer> EVEN = List.of(3, 3);

    private GroupScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        for (String assignor : List.of("Range", "RoundRobin", "Sticky", "CooperativeSticky")) {
            scenarios.put("share-" + assignor, (clients, topic) ->
                share(clients, topic, classic(topic, assignor), assignor.equals("Range") ? UNEVEN : EVEN));
        }
        for (String assignor : List.of("uniform", "range")) {
            scenarios.put("share-" + assignor, (clients, topic) ->
                share(clients, topic, modern(topic, assignor), assignor.equals("range") ? UNEVEN : EVEN));
        }
        scenarios.put("pattern-classic", (clients, topic) -> pattern(clients, topic, classic(topic, "Range")));
        scenarios.put("pattern-consumer", (clients, topic) -> pattern(clients, topic, modern(topic, "uniform")));
        scenarios.put("server-pattern", GroupScenarios::serverPattern);
        scenarios.put("grow-classic", (clients, topic) -> grow(clients, topic, classic(topic, "CooperativeSticky")));
        scenarios.put("grow-consumer", (clients, topic) -> grow(clients, topic, modern(topic, "uniform")));
        scenarios.put("migrate", GroupScenarios::migrate);
    }

    /** Settings of a member of the classic protocol; the group is called like the topic. */
    static Map<String, Object> classic(String group, String assignor) {
        Map<String, Object> settings = common(group);
        settings.put("group.protocol", "classic");
        settings.put("partition.assignment.strategy", ASSIGNORS + assignor + "Assignor");
        settings.put("heartbeat.interval.ms", 200);
        settings.put("session.timeout.ms", 30_000);
        return settings;
    }

    /** Settings of a member of the protocol of KIP-848. */
    static Map<String, Object> modern(String group, String assignor) {
        Map<String, Object> settings = common(group);
        settings.put("group.protocol", "consumer");
        settings.put("group.remote.assignor", assignor);
        return settings;
    }

    private static Map<String, Object> common(String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("group.id", group);
        settings.put("client.id", "client-of-" + group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", 300);
        return settings;
    }

    /** Values "from" to "from + count - 1", spread over all partitions of the topic. */
    static void fill(Clients clients, String topic, int partitions, int from, int count) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int number = from; number < from + count; number++) {
            byte[] value = RecordScenarios.bytes(topic + "/" + number);
            records.add(new ProducerRecord<>(topic, number % partitions, null, value));
        }
        clients.send(Map.of(), records);
    }

    static ConsumerGroupDescription describe(Clients clients, String group) throws Exception {
        return clients.admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    /** Wait until the members share so many partitions evenly and the group is stable. */
    static void settle(Clients clients, String group, List<Member> members, int partitions) throws Exception {
        List<Integer> even = new ArrayList<>();
        for (int number = 0; number < members.size(); number++) {
            even.add((partitions + number) / members.size());
        }
        settle(clients, group, members, even);
    }

    /** The same with given shares, smallest first: the group may be stable with others before. */
    private static void settle(Clients clients, String group, List<Member> members, List<Integer> shares)
        throws Exception {
        int partitions = shares.stream().mapToInt(Integer::intValue).sum();
        Waiting.until("the members of " + group + " hold " + shares + " partitions", () -> {
            Set<String> held = new TreeSet<>();
            members.forEach(member -> held.addAll(member.assigned()));
            return held.size() == partitions && Member.shares(members).equals(shares)
                && describe(clients, group).groupState() == GroupState.STABLE;
        });
    }

    /** Three members of one group read two topics; one leaves, and the other two go on. */
    private static Object share(
        Clients clients, String topic, Map<String, Object> settings, List<Integer> sharesOfTwo
    ) throws Exception {
        String[] topics = {clients.create(topic + "-a", 3, Map.of()), clients.create(topic + "-b", 3, Map.of())};
        for (String each : topics) {
            fill(clients, each, 3, 0, 60);
        }
        Owners owners = new Owners();
        List<Member> members = new ArrayList<>();
        Map<String, Object> seen = new LinkedHashMap<>();
        try {
            for (int number = 0; number < 3; number++) {
                members.add(Member.of(clients, owners, settings, topics));
            }
            settle(clients, topic, members, 6);
            Waiting.until("120 values are read", () -> Member.readByAll(members).size() >= 120);
            seen.put("three", Member.shares(members));
            ConsumerGroupDescription described = describe(clients, topic);
            seen.put("described", List.of(
                described.members().size(), described.partitionAssignor(), described.type().toString()));
            members.get(0).close();
            List<Member> rest = members.subList(1, 3);
            settle(clients, topic, rest, sharesOfTwo);
            for (String each : topics) {
                fill(clients, each, 3, 60, 60);
            }
            Waiting.until("240 values are read", () -> Member.readByAll(members).size() >= 240);
            seen.put("two", Member.shares(rest));
            List<String> read = Member.readByAll(members);
            seen.put("read", read.size());
            seen.put("distinct", new TreeSet<>(read).size());
            seen.put("overlaps", owners.overlaps);
        } finally {
            for (Member each : members) {
                each.close();
            }
        }
        seen.put("afterAll", describe(clients, topic).groupState().toString());
        return seen;
    }

    /** A pattern that the client expands: a topic that appears later is read too. */
    private static Object pattern(Clients clients, String topic, Map<String, Object> settings) throws Exception {
        clients.create(topic + "-1", 1, Map.of());
        clients.create("other-" + topic, 1, Map.of());
        Pattern topics = Pattern.compile(Pattern.quote(topic) + "-\\d");
        try (Member member = new Member(
            clients, new Owners(), settings, (consumer, listener) -> consumer.subscribe(topics, listener))) {
            return watchForTopics(clients, topic, member);
        }
    }

    /** A pattern that the broker expands. */
    private static Object serverPattern(Clients clients, String topic) throws Exception {
        clients.create(topic + "-1", 1, Map.of());
        clients.create("other-" + topic, 1, Map.of());
        SubscriptionPattern topics = new SubscriptionPattern(topic + "-[0-9]");
        try (Member member = new Member(clients, new Owners(), modern(topic, "uniform"),
            (consumer, listener) -> consumer.subscribe(topics, listener))) {
            return watchForTopics(clients, topic, member);
        }
    }

    private static List<String> watchForTopics(Clients clients, String topic, Member member) throws Exception {
        settle(clients, topic, List.of(member), 1);
        clients.create(topic + "-2", 2, Map.of());
        clients.create(topic + "-x", 2, Map.of());
        settle(clients, topic, List.of(member), 3);
        fill(clients, topic + "-2", 2, 0, 4);
        Waiting.until("the new topic is read", () -> member.read.size() == 4);
        return member.assigned().stream().map(name -> name.substring(topic.length())).toList();
    }

    /** More partitions: the group rebalances and reads them from their beginning. */
    private static Object grow(Clients clients, String topic, Map<String, Object> settings) throws Exception {
        clients.create(topic, 2, Map.of());
        Owners owners = new Owners();
        try (Member one = Member.of(clients, owners, settings, topic);
             Member two = Member.of(clients, owners, settings, topic)) {
            List<Member> members = List.of(one, two);
            settle(clients, topic, members, 2);
            clients.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(6))).all().get();
            settle(clients, topic, members, 6);
            fill(clients, topic, 6, 0, 60);
            Waiting.until("60 values are read", () -> Member.readByAll(members).size() >= 60);
            return Map.of("shares", Member.shares(members), "read", Member.readByAll(members).size(),
                "overlaps", owners.overlaps);
        }
    }

    /** A classic group becomes a consumer group when a member of the new protocol joins, and classic again. */
    private static Object migrate(Clients clients, String topic) throws Exception {
        clients.create(topic, 4, Map.of());
        fill(clients, topic, 4, 0, 40);
        Owners owners = new Owners();
        List<String> types = new ArrayList<>();
        Member old = Member.of(clients, owners, classic(topic, "CooperativeSticky"), topic);
        List<Member> members = new ArrayList<>(List.of(old));
        try {
            settle(clients, topic, members, 4);
            types.add(describe(clients, topic).type().toString());
            Member young = Member.of(clients, owners, modern(topic, "uniform"), topic);
            members.add(young);
            settle(clients, topic, members, 4);
            types.add(describe(clients, topic).type().toString());
            Waiting.until("40 values are read", () -> Member.readByAll(members).size() >= 40);
            young.close();
            settle(clients, topic, List.of(old), 4);
            types.add(describe(clients, topic).type().toString());
            return Map.of("types", types, "overlaps", owners.overlaps,
                "distinct", new TreeSet<>(Member.readByAll(members)).size());
        } finally {
            for (Member each : members) {
                each.close();
            }
        }
    }
}
