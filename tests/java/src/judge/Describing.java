package judge;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.clients.admin.TopicDescription;

/** An administrator who describes the cluster and a topic again and again. */
final class Describing extends Job {
    private static final int PAUSE_MS = 20;
    private final Clients clients;
    private final String topic;
    private final Set<Integer> leaders = new ConcurrentSkipListSet<>();
    private final Set<Integer> counts = new TreeSet<>();
    private final Set<String> clusterIds = new TreeSet<>();

    Describing(Clients clients, String topic) {
        this.clients = clients;
        this.topic = topic;
    }

    @Override
    void run() throws Exception {
        while (!isStopping()) {
            var cluster = clients.admin.describeCluster();
            counts.add(cluster.nodes().get().size());
            clusterIds.add(cluster.clusterId().get());
            TopicDescription described = clients.admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            var leader = described.partitions().get(0).leader();
            leaders.add(leader == null ? -1 : leader.id());
            done.incrementAndGet();
            Thread.sleep(PAUSE_MS);
        }
    }

    @Override
    Object result() {
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("leaders", leaders);
        seen.put("counts", counts);
        seen.put("clusterIds", clusterIds.size());
        return seen;
    }
}
