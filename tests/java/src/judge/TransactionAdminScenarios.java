package judge;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/** Transactions as an administrator sees and ends them. */
final class TransactionAdminScenarios {
    private TransactionAdminScenarios() { }

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("describe-transactions", TransactionAdminScenarios::describeTransactions);
        scenarios.put("list-transactions", TransactionAdminScenarios::listTransactions);
        scenarios.put("describe-producers", TransactionAdminScenarios::describeProducers);
        scenarios.put("fence-producers", TransactionAdminScenarios::fenceProducers);
        scenarios.put("terminate-transaction", TransactionAdminScenarios::terminateTransaction);
        scenarios.put("abort-transaction", TransactionAdminScenarios::abortTransaction);
    }

    private static TransactionDescription described(Clients clients, String id) throws Exception {
        return clients.admin.describeTransactions(List.of(id)).description(id).get();
    }

    private static String shown(TransactionDescription description) {
        List<Integer> partitions =
            description.topicPartitions().stream().map(TopicPartition::partition).sorted().toList();
        return description.state() + " " + partitions + " " + description.transactionTimeoutMs() + " "
            + description.transactionStartTimeMs().isPresent();
    }

    private static Object describeTransactions(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("absent", Clients.failureOf(clients.admin.describeTransactions(List.of(topic)).all()));
        try (KafkaProducer<byte[], byte[]> producer =
                 TransactionScenarios.transactional(clients, topic, Map.of("transaction.timeout.ms", 54_321))) {
            seen.put("new", shown(described(clients, topic)));
            int epoch = described(clients, topic).producerEpoch();
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "value");
            seen.put("open", shown(described(clients, topic)));
            seen.put("coordinator", described(clients, topic).coordinatorId() >= 0);
            producer.commitTransaction();
            Waiting.until("the commit is complete",
                () -> described(clients, topic).state() == TransactionState.COMPLETE_COMMIT);
            seen.put("committed", shown(described(clients, topic)));
            seen.put("epochs", described(clients, topic).producerEpoch() - epoch);
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "value");
            producer.abortTransaction();
            Waiting.until("the abort is complete",
                () -> described(clients, topic).state() == TransactionState.COMPLETE_ABORT);
            seen.put("aborted", shown(described(clients, topic)));
        }
        return seen;
    }

    private static Object listTransactions(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        try (KafkaProducer<byte[], byte[]> open = TransactionScenarios.transactional(clients, topic + "-open");
             KafkaProducer<byte[], byte[]> idle = TransactionScenarios.transactional(clients, topic + "-idle")) {
            open.beginTransaction();
            TransactionScenarios.send(open, topic, "value");
            idle.beginTransaction();
            TransactionScenarios.send(idle, topic, "value");
            idle.abortTransaction();
            Waiting.until("the abort is complete",
                () -> described(clients, topic + "-idle").state() == TransactionState.COMPLETE_ABORT);
            long producerId = described(clients, topic + "-open").producerId();
            Map<String, ListTransactionsOptions> filters = new LinkedHashMap<>();
            filters.put("all", new ListTransactionsOptions());
            filters.put("ongoing", new ListTransactionsOptions().filterStates(List.of(TransactionState.ONGOING)));
            filters.put("producer", new ListTransactionsOptions().filterProducerIds(List.of(producerId)));
            filters.put("longer", new ListTransactionsOptions().filterOnDuration(3_600_000));
            filters.put("started", new ListTransactionsOptions().filterOnDuration(0));
            filters.put("pattern", new ListTransactionsOptions().filterOnTransactionalIdPattern(topic + "-i.*"));
            filters.put("partOfName", new ListTransactionsOptions().filterOnTransactionalIdPattern("-idle"));
            Map<String, Object> seen = new LinkedHashMap<>();
            for (Map.Entry<String, ListTransactionsOptions> each : filters.entrySet()) {
                seen.put(each.getKey(), names(topic, clients.admin.listTransactions(each.getValue()).all().get()));
            }
            seen.put("badPattern", Clients.failureOf(clients.admin.listTransactions(
                new ListTransactionsOptions().filterOnTransactionalIdPattern("(")).all()));
            open.abortTransaction();
            return seen;
        }
    }

    private static Map<String, String> names(String prefix, Collection<TransactionListing> listings) {
        Map<String, String> names = new TreeMap<>();
        for (TransactionListing each : listings) {
            if (each.transactionalId().startsWith(prefix)) {
                names.put(each.transactionalId().substring(prefix.length()), each.state().toString());
            }
        }
        return names;
    }

    private static ProducerState producerOf(Clients clients, TopicPartition where) throws Exception {
        return clients.admin.describeProducers(List.of(where)).partitionResult(where).get().activeProducers().get(0);
    }

    private static Object describeProducers(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaProducer<byte[], byte[]> producer = TransactionScenarios.transactional(clients, topic)) {
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "one", "two");
            ProducerState open = producerOf(clients, where);
            TransactionDescription description = described(clients, topic);
            seen.put("open", List.of(open.currentTransactionStartOffset().orElse(-1), open.lastSequence(),
                open.coordinatorEpoch().orElse(-1)));
            seen.put("same", open.producerId() == description.producerId()
                && open.producerEpoch() == description.producerEpoch());
            producer.commitTransaction();
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "three");
            ProducerState next = producerOf(clients, where);
            seen.put("next", List.of(next.currentTransactionStartOffset().orElse(-1), next.lastSequence(),
                next.coordinatorEpoch().orElse(-1)));
            producer.commitTransaction();
            Waiting.until("the transaction is over",
                () -> producerOf(clients, where).currentTransactionStartOffset().isEmpty());
            seen.put("epochs", producerOf(clients, where).producerEpoch() - open.producerEpoch());
        }
        return seen;
    }

    private static Object fenceProducers(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaProducer<byte[], byte[]> producer = TransactionScenarios.transactional(clients, topic)) {
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "value");
            short before = (short) described(clients, topic).producerEpoch();
            var fenced = clients.admin.fenceProducers(List.of(topic));
            seen.put("sameId", fenced.producerId(topic).get() == described(clients, topic).producerId());
            seen.put("higher", fenced.epochId(topic).get() > before);
            seen.put("commit", TransactionScenarios.failureOf(producer::commitTransaction));
        }
        seen.put("state", "" + described(clients, topic).state());
        seen.put("committed", TransactionScenarios.read(clients, "read_committed", topic, 0));
        return seen;
    }

    private static Object terminateTransaction(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaProducer<byte[], byte[]> producer = TransactionScenarios.transactional(clients, topic)) {
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "value");
            seen.put("failure", Clients.failureOf(clients.admin.forceTerminateTransaction(topic).result()));
            seen.put("state", "" + described(clients, topic).state());
            seen.put("commit", TransactionScenarios.failureOf(producer::commitTransaction));
        }
        seen.put("committed", TransactionScenarios.read(clients, "read_committed", topic, 0));
        return seen;
    }

    /** An administrator ends a hanging transaction by a marker for one partition. */
    private static Object abortTransaction(Clients clients, String topic) throws Exception {
        clients.create(topic, 1, Map.of());
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> seen = new LinkedHashMap<>();
        try (KafkaProducer<byte[], byte[]> producer = TransactionScenarios.transactional(clients, topic)) {
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "before");
            producer.commitTransaction();
            producer.beginTransaction();
            TransactionScenarios.send(producer, topic, "value");
            ProducerState open = producerOf(clients, where);
            short epoch = (short) open.producerEpoch();
            AbortTransactionSpec stale = new AbortTransactionSpec(where, open.producerId(), (short) (epoch - 1), 0);
            seen.put("stale", Clients.failureOf(clients.admin.abortTransaction(stale).all()));
            AbortTransactionSpec right = new AbortTransactionSpec(where, open.producerId(), epoch, 0);
            seen.put("right", Clients.failureOf(clients.admin.abortTransaction(right).all()));
            seen.put("open", producerOf(clients, where).currentTransactionStartOffset().isPresent());
            seen.put("committed", TransactionScenarios.read(clients, "read_committed", topic, 0));
        }
        return seen;
    }
}
