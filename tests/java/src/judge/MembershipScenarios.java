package judge;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Static members, removed members, and what they may commit. */
final class MembershipScenarios {
    private MembershipScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        Map<String, Protocol> protocols = new LinkedHashMap<>();
        protocols.put("classic", group -> GroupScenarios.classic(group, "Range"));
        protocols.put("consumer", group -> GroupScenarios.modern(group, "uniform"));
        protocols.forEach((name, protocol) -> {
            scenarios.put("static-" + name, (clients, topic) -> staticMember(clients, topic, protocol));
            scenarios.put("same-instance-" + name, (clients, topic) -> sameInstance(clients, topic, protocol));
            scenarios.put("committed-" + name, (clients, topic) -> committed(clients, topic, protocol));
            scenarios.put("removed-" + name, (clients, topic) -> removed(clients, topic, protocol));
            scenarios.put("too-slow-" + name, (clients, topic) -> tooSlow(clients, topic, protocol));
        });
    }

    /** The settings of a member of the group, in one protocol or the other. */
    @FunctionalInterface
    private interface Protocol {
        Map<String, Object> settings(String group);

        default Map<String, Object> with(String group, String key, Object value) {
            Map<String, Object> settings = new HashMap<>(settings(group));
            settings.put(key, value);
            return settings;
        }
    }

    private static int generation(Member member) throws Exception {
        return member.call(consumer -> consumer.groupMetadata().generationId());
    }

    /** A static member that restarts gets its partitions again, without a rebalance. */
    private static Object staticMember(Clients clients, String topic, Protocol protocol) throws Exception {
        clients.create(topic, 4, Map.of());
        Owners owners = new Owners();
        Map<String, Object> first = protocol.with(topic, "group.instance.id", "first");
        try (Member staying = Member.of(clients, owners, protocol.with(topic, "group.instance.id", "second"), topic)) {
            Set<String> before;
            int generation;
            try (Member restarted = Member.of(clients, owners, first, topic)) {
                GroupScenarios.settle(clients, topic, List.of(staying, restarted), 4);
                before = restarted.assigned();
                generation = generation(staying);
            }
            int rebalances = staying.rebalances.get();
            try (Member again = Member.of(clients, owners, first, topic)) {
                GroupScenarios.settle(clients, topic, List.of(staying, again), 4);
                return Map.of(
                    "samePartitions", again.assigned().equals(before),
                    "sameGeneration", generation(staying) == generation,
                    "rebalances", staying.rebalances.get() - rebalances,
                    "instances", GroupScenarios.describe(clients, topic).members().stream()
                        .map(member -> member.groupInstanceId().orElse("")).sorted().toList());
            }
        }
    }

    /** Two members with one instance id: the classic protocol fences the first, the new one refuses the second. */
    private static Object sameInstance(Clients clients, String topic, Protocol protocol) throws Exception {
        clients.create(topic, 2, Map.of());
        Map<String, Object> settings = protocol.with(topic, "group.instance.id", "only");
        try (Member older = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(older), 2);
            try (Member newer = Member.of(clients, new Owners(), settings, topic)) {
                Waiting.until("one of the two fails", () -> older.ended.isDone() || newer.ended.isDone());
                Member winner = older.ended.isDone() ? newer : older;
                GroupScenarios.settle(clients, topic, List.of(winner), 2);
                return Map.of("older", String.valueOf(older.ended.getNow(null)),
                    "newer", String.valueOf(newer.ended.getNow(null)));
            }
        }
    }

    /** The member, a client outside the group and the admin client read exactly what was committed. */
    private static Object committed(Clients clients, String topic, Protocol protocol) throws Exception {
        clients.create(topic, 2, Map.of());
        GroupScenarios.fill(clients, topic, 2, 0, 20);
        TopicPartition where = new TopicPartition(topic, 0);
        TopicPartition never = new TopicPartition(topic, 1);
        OffsetAndMetadata sent = new OffsetAndMetadata(7, Optional.of(0), "nöte");
        Map<String, Object> seen = new LinkedHashMap<>();
        Map<String, Object> settings = protocol.with(topic, "enable.auto.commit", false);
        try (Member member = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(member), 2);
            member.call(consumer -> {
                consumer.commitSync(Map.of(where, sent));
                return null;
            });
            Map<TopicPartition, OffsetAndMetadata> back =
                member.call(consumer -> consumer.committed(Set.of(where, never)));
            seen.put("member", shown(back.get(where)));
            seen.put("never", back.get(never));
        }
        seen.put("admin", shown(
            clients.admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().get(where)));
        try (KafkaConsumer<byte[], byte[]> next = clients.consumer(settings)) {
            next.assign(List.of(where));
            seen.put("next", shown(next.committed(Set.of(where)).get(where)));
            seen.put("position", next.position(where));
        }
        return seen;
    }

    private static List<Object> shown(OffsetAndMetadata offset) {
        return List.of(offset.offset(), offset.leaderEpoch().orElse(-1), offset.metadata());
    }

    /** A member that does not poll in time leaves its group, and its commit fails. */
    private static Object tooSlow(Clients clients, String topic, Protocol protocol) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> settings = protocol.with(topic, "max.poll.interval.ms", 2000);
        settings.put("enable.auto.commit", false);
        try (Member member = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(member), 1);
            String failure = member.call(consumer -> {
                awaitEmpty(clients, topic);
                return commitFailure(consumer, new TopicPartition(topic, 0));
            });
            GroupScenarios.settle(clients, topic, List.of(member), 1);
            return Map.of("failure", failure, "again", commitSucceeds(member, new TopicPartition(topic, 0)));
        }
    }

    private static void awaitEmpty(Clients clients, String group) {
        try {
            Waiting.until(group + " is empty", () -> GroupScenarios.describe(clients, group).members().isEmpty());
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static String commitFailure(KafkaConsumer<byte[], byte[]> consumer, TopicPartition where) {
        try {
            consumer.commitSync(Map.of(where, new OffsetAndMetadata(1)), Duration.ofSeconds(Waiting.SECONDS));
            return "nothing";
        } catch (RuntimeException failure) {
            return failure.getClass().getSimpleName();
        }
    }

    private static boolean commitSucceeds(Member member, TopicPartition where) throws Exception {
        return member.call(consumer -> commitFailure(consumer, where)).equals("nothing");
    }

    /** A member that an administrator removed: its commit fails, and it joins again by itself. */
    private static Object removed(Clients clients, String topic, Protocol protocol) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> settings = protocol.with(topic, "enable.auto.commit", false);
        RemoveMembersFromConsumerGroupOptions everybody = new RemoveMembersFromConsumerGroupOptions();
        everybody.reason("removed by a test");
        try (Member member = Member.of(clients, new Owners(), settings, topic)) {
            GroupScenarios.settle(clients, topic, List.of(member), 1);
            String failure = member.call(consumer -> {
                try {
                    clients.admin.removeMembersFromConsumerGroup(topic, everybody).all().get(60, TimeUnit.SECONDS);
                } catch (Exception failed) {
                    throw new IllegalStateException(failed);
                }
                return commitFailure(consumer, new TopicPartition(topic, 0));
            });
            GroupScenarios.settle(clients, topic, List.of(member), 1);
            return Map.of("failure", failure, "again", commitSucceeds(member, new TopicPartition(topic, 0)));
        }
    }
}
