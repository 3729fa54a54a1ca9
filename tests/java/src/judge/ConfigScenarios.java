package judge;

import static org.apache.kafka.clients.admin.AlterConfigOp.OpType.APPEND;
import static org.apache.kafka.clients.admin.AlterConfigOp.OpType.DELETE;
import static org.apache.kafka.clients.admin.AlterConfigOp.OpType.SET;
import static org.apache.kafka.clients.admin.AlterConfigOp.OpType.SUBTRACT;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.common.config.ConfigResource;

/** Configurations of topics, of the broker and of all brokers. */
final class ConfigScenarios {
    private ConfigScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("topic-configs", ConfigScenarios::topicConfigs);
        scenarios.put("broker-configs", ConfigScenarios::brokerConfigs);
        scenarios.put("incremental", ConfigScenarios::incremental);
        scenarios.put("dynamic-broker", ConfigScenarios::dynamicBroker);
        scenarios.put("config-errors", ConfigScenarios::configErrors);
        scenarios.put("config-resources", ConfigScenarios::configResources);
    }

    private static ConfigResource topicResource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private static Config described(Clients clients, ConfigResource resource) throws Exception {
        DescribeConfigsOptions all = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return clients.admin.describeConfigs(List.of(resource), all).all().get().get(resource);
    }

    private static Map<String, Object> shown(ConfigEntry entry) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("value", entry.value());
        shown.put("source", entry.source().name());
        shown.put("type", entry.type().name());
        shown.put("readOnly", entry.isReadOnly());
        shown.put("sensitive", entry.isSensitive());
        shown.put("documented", entry.documentation() != null && !entry.documentation().isBlank());
        shown.put("synonyms", entry.synonyms().stream().map(each -> each.name() + "=" + each.value()).toList());
        return shown;
    }

    private static Object topicConfigs(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of("retention.ms", "4242"));
        Map<String, Object> seen = new LinkedHashMap<>();
        described(clients, topicResource(topic)).entries().forEach(entry -> seen.put(entry.name(), shown(entry)));
        return seen;
    }

    private static ConfigResource brokerResource(Clients clients) throws Exception {
        int node = clients.admin.describeCluster().nodes().get().iterator().next().id();
        return new ConfigResource(ConfigResource.Type.BROKER, "" + node);
    }

    private static Object brokerConfigs(Clients clients, String topic) throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        described(clients, brokerResource(clients)).entries().forEach(entry -> seen.put(entry.name(), shown(entry)));
        return seen;
    }

    private static AlterConfigOp operation(String key, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(key, value), type);
    }

    private static void alter(Clients clients, ConfigResource resource, AlterConfigOp... changes) throws Exception {
        Collection<AlterConfigOp> all = List.of(changes);
        clients.admin.incrementalAlterConfigs(Map.of(resource, all)).all().get();
    }

    /** What the broker describes when the change has arrived, which may be shortly after its answer. */
    private static String eventually(Clients clients, ConfigResource resource, String key, String value) throws Exception {
        String shown = null;
        for (int turn = 0; turn < 100 && !value.equals(shown); turn++) {
            Thread.sleep(turn == 0 ? 0 : 50);
            shown = described(clients, resource).get(key).value();
        }
        return shown;
    }

    private static Object incremental(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of("cleanup.policy", "delete", "retention.ms", "4242"));
        ConfigResource resource = topicResource(topic);
        Map<String, Object> seen = new LinkedHashMap<>();
        alter(clients, resource,
            operation("cleanup.policy", "compact", APPEND),
            operation("retention.ms", "", DELETE),
            operation("segment.ms", "99999", SET));
        seen.put("appended", eventually(clients, resource, "cleanup.policy", "delete,compact"));
        seen.put("deleted", eventually(clients, resource, "retention.ms", "604800000"));
        seen.put("set", eventually(clients, resource, "segment.ms", "99999"));
        alter(clients, resource, operation("cleanup.policy", "delete", SUBTRACT));
        seen.put("subtracted", eventually(clients, resource, "cleanup.policy", "compact"));
        return seen;
    }

    private static Object dynamicBroker(Clients clients, String topic) throws Exception {
        ConfigResource broker = brokerResource(clients);
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        String key = "log.cleaner.backoff.ms";
        Map<String, Object> seen = new LinkedHashMap<>();
        alter(clients, all, operation(key, "15001", SET));
        seen.put("all", eventually(clients, broker, key, "15001"));
        alter(clients, broker, operation(key, "15002", SET));
        seen.put("one", eventually(clients, broker, key, "15002"));
        seen.put("synonyms", shown(described(clients, broker).get(key)).get("synonyms"));
        alter(clients, broker, operation(key, "", DELETE));
        seen.put("backToAll", eventually(clients, broker, key, "15001"));
        alter(clients, all, operation(key, "", DELETE));
        seen.put("backToDefault", eventually(clients, broker, key, "15000"));
        return seen;
    }

    private static String failure(Clients clients, ConfigResource resource, AlterConfigOp change) throws Exception {
        return Clients.failureOf(clients.admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all());
    }

    private static Object configErrors(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        ConfigResource resource = topicResource(topic);
        ConfigResource broker = brokerResource(clients);
        Map<String, Object> failures = new LinkedHashMap<>();
        failures.put("value", failure(clients, resource, operation("retention.ms", "soon", SET)));
        failures.put("key", failure(clients, resource, operation("no.such.key", "1", SET)));
        failures.put("append", failure(clients, resource, operation("retention.ms", "1", APPEND)));
        failures.put("absent", failure(clients, topicResource(topic + "-x"), operation("retention.ms", "1", SET)));
        failures.put("readOnly", failure(clients, broker, operation("log.dirs", "/elsewhere", SET)));
        failures.put("describe", Clients.failureOf(
            clients.admin.describeConfigs(List.of(topicResource(topic + "-x"))).all()));
        return failures;
    }

    private static Object configResources(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of("retention.ms", "4242"));
        Set<ConfigResource.Type> types = Set.of(ConfigResource.Type.TOPIC, ConfigResource.Type.BROKER);
        Collection<ConfigResource> resources =
            clients.admin.listConfigResources(types, new ListConfigResourcesOptions()).all().get();
        Set<String> kinds = new TreeSet<>();
        resources.forEach(each -> kinds.add(each.type().name()));
        return Map.of("topic", resources.contains(topicResource(topic)), "kinds", kinds);
    }
}
