package judge;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** One consumer of a group that polls in a thread of its own until it is closed or fails. */
final class Member implements AutoCloseable, ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(50);
    /** Values read, in order. */
    final List<String> read = new CopyOnWriteArrayList<>();
    /** Calls of onPartitionsAssigned so far. */
    final AtomicInteger rebalances = new AtomicInteger();
    /** Completed by the end of the thread: null, or what the consumer failed with. */
    final CompletableFuture<String> ended = new CompletableFuture<>();
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Owners owners;
    private final ConcurrentLinkedQueue<Runnable> calls = new ConcurrentLinkedQueue<>();
    private volatile Set<String> assigned = Set.of();
    private volatile boolean stopping;

    Member(
        Clients clients,
        Owners owners,
        Map<String, ?> settings,
        BiConsumer<KafkaConsumer<byte[], byte[]>, ConsumerRebalanceListener> subscribe
    ) {
        this.owners = owners;
        this.consumer = clients.consumer(settings);
        subscribe.accept(consumer, this);
        new Thread(this::run).start();
    }

    static Member of(Clients clients, Owners owners, Map<String, ?> settings, String... topics) {
        return new Member(
            clients, owners, settings, (consumer, listener) -> consumer.subscribe(List.of(topics), listener));
    }

    /** The partitions held after the last poll, as "topic-0". */
    Set<String> assigned() {
        return assigned;
    }

    private void run() {
        try (consumer) {
            while (!stopping) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    read.add(RecordScenarios.text(record.value()));
                }
                assigned = names(consumer.assignment());
                for (Runnable call = calls.poll(); call != null; call = calls.poll()) {
                    call.run();
                }
            }
        } catch (RuntimeException failure) {
            assigned = Set.of();
            ended.complete(failure.getClass().getSimpleName());
        } finally {
            ended.complete(null);
        }
    }

    /** Use the consumer between two polls, in its own thread. */
    <T> T call(Function<KafkaConsumer<byte[], byte[]>, T> use) throws Exception {
        CompletableFuture<T> answer = new CompletableFuture<>();
        calls.add(() -> {
            try {
                answer.complete(use.apply(consumer));
            } catch (RuntimeException failure) {
                answer.completeExceptionally(failure);
            }
        });
        return answer.get(Waiting.SECONDS, TimeUnit.SECONDS);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        rebalances.incrementAndGet();
        partitions.forEach(partition -> owners.take(partition, this));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        partitions.forEach(partition -> owners.give(partition, this));
    }

    private static Set<String> names(Collection<TopicPartition> partitions) {
        Set<String> names = new TreeSet<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        return names;
    }

    @Override
    public void close() {
        stopping = true;
        ended.join();
        assigned = Set.of();
    }

    /** Partitions held by each, fewest first. */
    static List<Integer> shares(Collection<Member> members) {
        return members.stream().map(member -> member.assigned().size()).sorted().toList();
    }

    static List<String> readByAll(Collection<Member> members) {
        List<String> values = new ArrayList<>();
        members.forEach(member -> values.addAll(member.read));
        return values.stream().sorted().toList();
    }
}
