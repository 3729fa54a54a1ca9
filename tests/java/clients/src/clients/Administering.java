package clients;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** The admin client: a topic from its creation to its deletion, and what a broker without security answers. */
final class Administering {
    private Administering() { }

    static void all(Properties settings, String topic, Map<String, Object> seen) throws Exception {
        try (Admin admin = Admin.create(settings)) {
            seen.put("nodes", admin.describeCluster().nodes().get().size());
            seen.put("group version", admin.describeFeatures().featureMetadata().get()
                .finalizedFeatures().containsKey("group.version"));
            topic(admin, topic, seen);
            unsecured(admin, topic, seen);
            admin.deleteTopics(Collections.singleton(topic)).all().get();
            seen.put("listed after deletion", admin.listTopics().names().get().contains(topic));
        }
    }

    private static void topic(Admin admin, String topic, Map<String, Object> seen) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AlterConfigOp change =
            new AlterConfigOp(new ConfigEntry("retention.ms", "4242"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        seen.put("retention", admin.describeConfigs(List.of(resource)).all().get()
            .get(resource).get("retention.ms").value());
        TopicPartition last = new TopicPartition(topic, 2);
        seen.put("latest", admin.listOffsets(Map.of(last, OffsetSpec.latest())).all().get().get(last).offset());
        seen.put("listed", admin.listTopics().names().get().contains(topic));
    }

    private static void unsecured(Admin admin, String topic, Map<String, Object> seen) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        seen.put("acls", failureOf(admin.describeAcls(AclBindingFilter.ANY).values()));
        seen.put("election", admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).partitions().get()
            .get(first).map(failure -> failure.getClass().getSimpleName()).orElse("nothing"));
        seen.put("moves", admin.listPartitionReassignments().reassignments().get());
        seen.put("cancelled move", failureOf(
            admin.alterPartitionReassignments(Map.of(first, Optional.empty())).all()));
        seen.put("quotas", admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
        seen.put("users", admin.describeUserScramCredentials().users().get());
        seen.put("tokens", failureOf(admin.describeDelegationToken().delegationTokens()));
    }

    /** The short name of what a call fails with, or "nothing". */
    private static String failureOf(KafkaFuture<?> call) throws InterruptedException {
        try {
            call.get();
            return "nothing";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        }
    }
}
